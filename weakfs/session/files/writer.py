"""The writer of session files: a session as one JSON document, in which shared values are written once.

Slices, blobs and pooled values (directories) are tables; snapshots, records and the current state refer to their rows
by number. Moments are visited in order of record number, so that a pool may write a value as its difference
from the one before. A value of a LOG slice that is the event of a record, such as a tool call, is written as the number
of that record. The same state gives the same bytes.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from attrs import field

from weakfs.class_decorators import define
from weakfs.session.blobs.blob import ContentSource, Stored
from weakfs.session.codec.columns import MANY, Columns
from weakfs.session.codec.encoding import AS_IT_IS, Writing
from weakfs.session.codec.round_trip import difference
from weakfs.session.codec.shared_values import Json
from weakfs.session.errors import SessionError
from weakfs.session.files.spool import BATCH, JsonArray, JsonObject, Spool
from weakfs.session.history.keyframes import PackedMark
from weakfs.session.history.log import Log
from weakfs.session.history.packing import are_same
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.replay.reduction import Row, event_of
from weakfs.session.slices.registry import Shape
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.slice import SliceSpec
from weakfs.session.slices.table import Table

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

# Blobs up to this size are written at once; it does not matter that a few of them could be stored as tails.
SMALL = 4096

T = TypeVar("T")


class Document:
    """Collects the tables of one file. With a `folder`, most of a large one is spooled there until it is written."""

    def __init__(
        self, rules: Rules, *, embed: bool = False, others: Sequence[ContentSource] = (), folder: str | None = None
    ) -> None:
        self._rules = rules
        self._spool = Spool(folder)
        self._writing = Writing(rules.registry, self.table, self._read_table, embed=embed, others=others)
        self._slices: list[JsonObject] = []
        # The value behind each row. Keeping it alive also keeps its id from being reused.
        self._values: list[Log[Any]] = []
        self._numbers: dict[int, int] = {}
        self._equals: list[Log[Any]] = []
        self._by_items: dict[tuple[str, bytes], int] = {}
        self._last_log: dict[str, tuple[int, Log[Any], Hash]] = {}
        self._columns_of: dict[str, Columns | None] = {}
        # What keyframes share.
        self._unpacked: dict[int, Any] = {}
        # The records of the document, and the numbers of those written so far whose event a LOG slice may hold, by tag.
        self._rows, self._dropped = Log[Row](), 0
        self._recorded: dict[str, array[int]] = {}

    def of(self, line: Timeline) -> dict[str, Json]:
        """Return the document of a timeline, without the session's own fields."""
        snapshots = ordered_snapshots(line)
        moments: list[SnapshotEntry | PackedMark] = [*line.all_lasting, *snapshots]
        moments.sort(key=lambda one: (one.seq, one.number if isinstance(one, SnapshotEntry) else -1))
        waiting = deque(moments)
        keyframes: list[Json] = []
        shown: dict[str, Json] = {}

        def show(moment: SnapshotEntry | PackedMark) -> None:
            if isinstance(moment, SnapshotEntry):
                shown[moment.snapshot_id] = self._snapshot(moment)
            else:
                keyframes.append(self._keyframe(moment))

        base: Json = None
        if line.dropped:
            mark = line.base
            base = {
                "state": self.table(mark.state),
                "logs": self.table(mark.logs),
                "block_end": mark.block_end,
            }
        records = JsonArray(self._spool)
        self._rows, seq = line.rows, line.dropped
        self._dropped = seq
        self._recorded = {tag: array("q") for tag in self._rules.logged_events}
        for batch in batched(line.rows):
            written: list[Json] = []
            plain = self._plain_events(batch)
            for row in batch:
                seq += 1
                while waiting and waiting[0].seq < seq:
                    show(waiting.popleft())
                written.append(self._record(seq, row, plain, f"$.records[{seq - line.dropped - 1}].event"))
                numbers = self._recorded.get(row[2])
                if numbers is not None:
                    numbers.append(seq)
            records.add([orjson.dumps(written, option=AS_IT_IS)[1:-1]])
        for moment in waiting:
            show(moment)
        state, logs = self.table(line.state), self.table(line.logs)
        sections = {pool.section: writer.rows for pool, writer in self._writing.pools.values()}
        return {
            "installed": self._all_installed(),
            "state": state,
            "logs": logs,
            "slices": self._slices,
            "snapshots": [shown[entry.snapshot_id] for entry in snapshots],
            "dropped": line.dropped,
            "base": base,
            "records": records,
            **({"checkpoints": keyframes} if keyframes else {}),
            **sections,
            "blobs": self._writing.blobs.rows,
        }

    def close(self) -> None:
        """Close the file that holds spooled parts of the document."""
        self._spool.close()

    @property
    def stored(self) -> Mapping[bytes, Collection[Stored]]:
        """The external blobs of the document by digest, each with one entry per source."""
        return {digest: found.values() for digest, found in self._writing.blobs.stored.items()}

    @property
    def lost(self) -> list[bytes]:
        """The digests of blobs that were to be embedded but that no source has any more, in order."""
        return sorted(self._writing.blobs.lost)

    def _record(self, seq: int, row: Row, plain: Mapping[str, Iterator[Json]], where: str) -> Json:
        at, cause, tag, _ = row
        events = plain.get(tag)
        if events is not None:
            event = next(events)
        else:
            built = event_of(self._rules, row)
            event = self._writing.value(built, type(built), where)
        if cause is None:
            return {"seq": seq, "at": at, "type": tag, "event": event}
        return {"seq": seq, "at": at, "type": tag, "cause": cause, "event": event}

    def _plain_events(self, rows: Sequence[Row]) -> dict[str, Iterator[Json]]:
        """Return the events whose types have only plain records, written a field at a time: by tag, in order."""
        values: dict[str, list[tuple[Any, ...]]] = {}
        for row in rows:
            values.setdefault(row[2], []).append(row[3])
        plain: dict[str, Iterator[Json]] = {}
        for tag, rows_of_type in values.items():
            columns = self._columns(tag)
            if columns is None or not columns.fit(rows_of_type):
                continue
            if columns.largest(rows_of_type) <= SMALL:
                plain[tag] = iter(columns.write(rows_of_type, self._writing.blobs))
            else:
                plain[tag] = self._one_by_one(columns, rows_of_type)
        return plain

    def _columns(self, tag: str) -> Columns | None:
        if tag not in self._columns_of:
            self._columns_of[tag] = Columns.of(self._rules.registry.shape(tag))
        return self._columns_of[tag]

    def _one_by_one(self, columns: Columns, rows: list[tuple[Any, ...]]) -> Iterator[Json]:
        """Yield rows one by one: a large blob is written in its turn, since by then it may be known as a tail."""
        for row in rows:
            yield columns.write((row,), self._writing.blobs)[0]

    def table(self, table: Table) -> Json:
        """Return the numbers of a table's slices, in order of tag."""
        return [self._slice(tag, table[tag]) for tag in sorted(table)]

    def _all_installed(self) -> list[Json]:
        """Return the rows of all slices, except for those that the registry declares and nobody used."""
        declared = {declaration.cls for declaration in self._rules.registry.slices}
        used = {row.fields["tag"] for row in self._slices}
        specs = sorted(self._rules.specs.values(), key=_by_tag)
        listed = [spec for spec in specs if spec.cls not in declared or spec.tag in used]
        return [self._installed(spec, is_declared=spec.cls in declared) for spec in listed]

    def _installed(self, spec: SliceSpec, *, is_declared: bool) -> Json:
        row: dict[str, Json] = {"tag": spec.tag, "kind": spec.kind}
        # A slice that the registry declares starts with the declared value.
        if not is_declared:
            where = f"the initial value of {spec.tag!r}"
            row["initial"] = [self._writing.value(value, spec.cls, where) for value in spec.empty]
        return row

    def _read_table(self, numbers: Json) -> Table:
        """Return the table for a list of numbers, to compare it with what was written."""
        return Table({self._slices[number].fields["tag"]: self._values[number] for number in numbers})

    def _slice(self, tag: str, values: Log[Any]) -> int:
        known = self._numbers.get(id(values))
        if known is not None:
            return known
        spec = self._rules.specs.get(tag)
        if spec is None:
            raise SessionError(f"cannot save the slice {tag!r}: its type is not installed; call session.install first")
        number = len(self._slices)
        after, before, last = self._last_log.get(tag, (None, Log[Any](), sha256()))
        skip = index = len(before) if values.extends(before) else 0
        hashed = last.copy() if skip else sha256()
        parts = [Part(JsonArray(self._spool))]
        for batch, numbers in self._with_records(spec, values, skip, len(before)):
            for is_recorded, run in groupby(zip(numbers, batch, strict=True), _is_recorded):
                own = list(run)
                if is_recorded:
                    parts[-1].records += [seq for seq, _ in own if seq is not None]
                    texts = [b"@%d" % seq for seq, _ in own if seq is not None]
                else:
                    if parts[-1].records:
                        parts.append(Part(JsonArray(self._spool)))
                    items = self._items(spec, [value for _, value in own], f"$.slices[{number}].items", index)
                    texts = [orjson.dumps(item, option=AS_IT_IS) for item in items]
                    parts[-1].items.add(texts)
                hashed.update(b"%b\n" % b"\n".join(texts))
                index += len(own)
                parts[-1].end = index
            if not skip and index == len(before) and hashed.digest() == last.digest():
                # It begins with equal items that are other objects: loading makes them the same.
                parts, skip = [Part(JsonArray(self._spool))], len(before)
        digest = hashed.digest()
        known = self._by_items.get((tag, digest))
        if known is not None:
            self._numbers[id(values)] = known
            self._equals.append(values)
            return known
        for part in parts:
            number = len(self._slices)
            row: dict[str, Json] = {"tag": tag, "kind": spec.kind}
            if skip:
                row["after"] = after
            row["items"] = part.items
            if part.records:
                row["records"] = part.records
            self._slices.append(JsonObject(row))
            self._values.append(values if part is parts[-1] else values.prefix(part.end))
            after, skip = number, part.end
        self._by_items[tag, digest] = self._numbers[id(values)] = number
        self._last_log[tag] = (number, values, hashed)
        return number

    def _with_records(
        self, spec: SliceSpec, values: Log[Any], skip: int, edge: int
    ) -> Iterator[tuple[list[Any], list[int | None]]]:
        """Yield the values after the first `skip` in batches, with the number of the record whose event each one is.

        The newest values are compared with the newest records of their type. No batch goes across the place `edge`.
        """
        remaining = values.since(skip)
        batches = chain(batched(islice(remaining, max(edge - skip, 0))), batched(remaining))
        shape = self._rules.registry.by_type.get(spec.cls)
        recorded = self._recorded.get(shape.tag) if shape is not None and spec.kind == "log" else None
        if not recorded or shape is None:
            for batch in batches:
                yield batch, [None] * len(batch)
            return
        first = len(recorded) - len(values) + skip
        numbers = recorded[max(first, 0) :]
        rows = self._rows.since(numbers[0] - self._dropped - 1) if numbers else iter(())
        fields = (row[3] for row in rows if row[2] == shape.tag)
        events = chain([None] * -first, zip(numbers, fields, strict=False))
        for batch in batches:
            yield batch, [_number_of(shape, value, event) for value, event in zip(batch, events, strict=False)]

    def _items(self, spec: SliceSpec, values: Sequence[Any], where: str, start: int) -> Iterator[Json]:
        """Yield the values of a slice as JSON: a field at a time if there are many and they are plain."""
        shape = self._rules.registry.by_type.get(spec.cls)
        columns = self._columns(spec.tag) if len(values) >= MANY and shape is not None else None
        if columns is not None and shape is not None and all(type(value) is spec.cls for value in values):
            rows = list(map(shape.pack, values))
            if columns.fit(rows):
                yield from columns.write(rows, self._writing.blobs, whole=True)
                return
        for index, value in enumerate(values, start):
            yield self._writing.value(value, spec.cls, f"{where}[{index}]")

    def _keyframe(self, packed: PackedMark) -> Json:
        mark = packed.open(self._unpacked)
        return {"seq": mark.seq, "state": self.table(mark.state), "logs": self.table(mark.logs)}

    def _snapshot(self, entry: SnapshotEntry) -> Json:
        row: dict[str, Json] = {
            "id": entry.snapshot_id,
            "number": entry.number,
            "seq": entry.seq,
            "at": entry.at,
            "tag": entry.tag,
            "state": self.table(entry.state),
        }
        if entry.externals:
            where = f"the snapshot {entry.snapshot_id!r}"
            row["externals"] = self._writing.value(entry.externals, tuple, where)
        return row


@define
class Part:
    """One row of a slice: values, then the numbers of records whose events are values. `end` counts the values."""

    items: JsonArray
    records: list[int] = field(factory=list[int])
    end: int = 0


def _is_recorded(item: tuple[int | None, Any]) -> bool:
    return item[0] is not None


def _number_of(shape: Shape, value: Any, event: tuple[int, tuple[Any, ...]] | None) -> int | None:
    """Return the number of a record if its event is the given value."""
    if event is None or type(value) is not shape.cls:
        return None
    number, recorded = event
    fields = shape.pack(value)
    return number if are_same(fields, recorded) or difference(fields, recorded, "") is None else None


def batched(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield the items in lists small enough to hold in memory."""
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _by_tag(spec: SliceSpec) -> str:
    return spec.tag
