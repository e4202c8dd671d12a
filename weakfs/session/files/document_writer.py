"""The writer of session files: a session as one JSON document, in which shared values are written once.

Slices, blobs and pooled values (directories) are tables; snapshots, records and the current state refer to their rows
by number. Moments are visited in order of record number, so that a pool may write a value as its difference
from the one before. A value of a LOG slice that is the event of a record, such as a tool call, is written as the number
of that record. The same state gives the same bytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain, groupby
from operator import is_
from typing import TYPE_CHECKING, Any

import orjson

from weakfs.class_decorators import define
from weakfs.session.blobs.blob import ContentSource, Stored
from weakfs.session.codec.blob_table import Json
from weakfs.session.codec.columns import MANY, Columns
from weakfs.session.codec.encoder import AS_IT_IS, Writing
from weakfs.session.codec.round_trip import difference
from weakfs.session.errors import SessionError
from weakfs.session.files.spool import JsonArray, JsonObject, Spool
from weakfs.session.history.keyframes import PackedMark
from weakfs.session.history.packed_rows import Block, PackedValues, are_same
from weakfs.session.history.record_columns import RecordColumns, column_stretches, numbers_of
from weakfs.session.history.reduction import Row
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log
from weakfs.session.slices.slice import SliceSpec
from weakfs.session.slices.table import Table
from weakfs.session.slices.type_registry import Shape

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

# Blobs up to this size are written immediately; it does not matter that a few of them could be stored as tails.
SMALL = 4096


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
        # The packed values that keyframes share.
        self._unpacked: dict[int, Any] = {}
        # The records of the document, and the numbers of the records whose events a LOG slice may hold: by tag, and for
        # those in one stretch, by the identity of the block in which their events are packed. The block is kept, so
        # that its id is not reused if another thread compresses it meanwhile.
        self._rows, self._dropped = Log[Row](), 0
        self._recorded: dict[str, array[int]] = {}
        self._packed: dict[int, tuple[Block, Sequence[int]]] = {}
        # The number of the record before the moment that is being written.
        self._seq = 0

    def of(self, line: Timeline) -> dict[str, Json]:
        """Return the document of a timeline, without the session's own fields."""
        snapshots = ordered_snapshots(line)
        moments: list[SnapshotEntry | PackedMark] = [*line.all_lasting, *snapshots]
        moments.sort(key=lambda one: (one.seq, one.number if isinstance(one, SnapshotEntry) else -1))
        waiting = deque(moments)
        keyframes: list[Json] = []
        shown: dict[str, Json] = {}

        def show_until(seq: int) -> None:
            while waiting and waiting[0].seq <= seq:
                moment = waiting.popleft()
                self._seq = moment.seq
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
        self._rows, self._dropped, seq = line.rows, line.dropped, line.dropped
        self._recorded = {tag: array("q") for tag in self._rules.logged_events}
        for place, stretch in enumerate(column_stretches(line.rows, line.dropped)):
            records.add([self._stretch(stretch, seq + 1, f"$.records[{place}]", show_until)])
            seq += len(stretch.tags)
            show_until(seq)
        show_until(seq)
        self._seq = seq
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
        """Close the file that holds spooled parts of the document, which cannot be used afterwards."""
        self._spool.close()
        self._writing.close()

    @property
    def stored(self) -> Mapping[bytes, Collection[Stored]]:
        """The external blobs of the document by digest, each with one entry per source."""
        return {digest: found.values() for digest, found in self._writing.blobs.stored.items()}

    @property
    def lost(self) -> list[bytes]:
        """The digests of blobs that were to be embedded but that no source has any more, in order."""
        return sorted(self._writing.blobs.lost)

    def _stretch(self, stretch: RecordColumns, first: int, where: str, show_until: Callable[[int], None]) -> bytes:
        """Return a row of records.

        Moments among the records are written in their turn, since events may share values with them: values that are
        not plain, and large blobs, which may then be known as tails.
        """
        tags, blobs = stretch.tags, self._writing.blobs
        events: dict[str, Json] = {}
        in_turn: dict[str, Iterator[Json]] = {}
        for tag, fields in stretch.fields.items():
            columns = Columns.of(self._rules.registry.shape(tag))
            is_plain = columns is not None and columns.fit(fields)
            if columns is not None and is_plain and columns.largest(fields) <= SMALL:
                events[tag] = columns.write_columns(fields, blobs)
            else:
                events[tag] = []
                in_turn[tag] = self._one_by_one(tag, stretch, columns if is_plain else None, f"{where}.events.{tag}")
            if tag in self._recorded:
                numbers = numbers_of(tag, tags, first)
                self._recorded[tag].extend(numbers)
                if tag in stretch.blocks:
                    block = stretch.blocks[tag]
                    self._packed[id(block)] = block, numbers
        for seq, tag in enumerate(tags, first) if in_turn else ():
            if tag in in_turn:
                show_until(seq - 1)
                events[tag].append(next(in_turn[tag]))
        row: dict[str, Json] = {"seq": first, "at": stretch.ats, "type": tags[0] if len(events) == 1 else tags}
        if stretch.causes.count(None) < len(tags):
            row["cause"] = stretch.causes
        row["events"] = events
        return orjson.dumps(row, option=AS_IT_IS)

    def _one_by_one(self, tag: str, stretch: RecordColumns, columns: Columns | None, where: str) -> Iterator[Json]:
        """Yield the events of one type, each written in its turn."""
        shape = self._rules.registry.shape(tag)
        for index, fields in enumerate(stretch.fields_of(tag)):
            if columns is not None:
                yield columns.write((fields,), self._writing.blobs)[0]
            else:
                yield self._writing.value(shape.build(*fields), shape.cls, f"{where}[{index}]")

    def table(self, table: Table) -> Json:
        """Return the numbers of a table's slices, in order of tag."""
        return [self._slice(tag, table[tag]) for tag in sorted(table)]

    def _all_installed(self) -> list[Json]:
        """Return the rows of all slices, except for unused ones that the registry declares."""
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
        for batch, is_recorded in self._with_records(spec, values, skip, len(before)):
            if is_recorded:
                text = orjson.dumps(batch)[1:-1]
                parts[-1].add_numbers(text, self._spool)
                hashed.update(text + b",")
            else:
                if parts[-1].records is not None:
                    parts.append(Part(JsonArray(self._spool)))
                items = self._items(spec, batch, f"$.slices[{number}].items", index)
                texts = [orjson.dumps(item, option=AS_IT_IS) for item in items]
                parts[-1].items.add(texts)
                hashed.update(b"%b\n" % b"\n".join(texts))
            index += len(batch)
            parts[-1].end = index
            if not skip and index == len(before) and hashed.digest() == last.digest():
                # The slice begins with equal items that are different objects. Loading makes them the same objects.
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
            if part.records is not None:
                row["records"] = part.records
            self._slices.append(JsonObject(row))
            self._values.append(values if part is parts[-1] else values.prefix(part.end))
            after, skip = number, part.end
        self._by_items[tag, digest] = self._numbers[id(values)] = number
        self._last_log[tag] = (number, values, hashed)
        return number

    def _with_records(
        self, spec: SliceSpec, values: Log[Any], skip: int, edge: int
    ) -> Iterator[tuple[list[Any], bool]]:
        """Yield the values after the first `skip` in batches, or the numbers of the records whose events they are.

        Values that share their packed form with records are the events of these records. Others are compared with the
        events of the newest records of their type. No batch crosses the position `edge`.
        """
        shape = self._rules.registry.by_type.get(spec.cls)
        recorded = self._recorded.get(shape.tag, ()) if shape is not None and spec.kind == "log" else ()
        offset = bisect_right(recorded, self._seq) - len(values)
        for stretch, start, end in values._parts_since(skip, edge):
            base = stretch.start
            packed = self._packed.get(id(stretch.items.block)) if isinstance(stretch.items, PackedValues) else None
            if packed is not None:
                yield list(packed[1][start - base : end - base]), True
                continue
            batch = stretch.read()[start - base : end - base]
            if shape is None or not recorded or end + offset <= 0:
                yield batch, False
                continue
            unknown = max(-offset - start, 0)
            if unknown:
                yield batch[:unknown], False
            numbers = recorded[start + unknown + offset : end + offset].tolist()
            rest, events = batch[unknown:], self._events(shape.tag, numbers)
            if _are_events(shape, rest, events):
                yield numbers, True
                continue
            for is_same, run in groupby(zip(rest, numbers, events, strict=True), partial(_is_event, shape)):
                yield [number if is_same else value for value, number, _ in run], is_same

    def _events(self, tag: str, numbers: list[int]) -> list[tuple[Any, ...]]:
        """Return the fields of the records of a type with these numbers."""
        first, end = numbers[0] - self._dropped - 1, numbers[-1] - self._dropped
        return [
            row[3]
            for stretch, low, high in self._rows.prefix(end)._parts_since(first, first)
            for row in stretch.read()[low - stretch.start : high - stretch.start]
            if row[2] == tag
        ]

    def _items(self, spec: SliceSpec, values: Sequence[Any], where: str, start: int) -> Iterator[Json]:
        """Yield the values of a slice as JSON: a field at a time if there are many and they are plain."""
        shape = self._rules.registry.by_type.get(spec.cls)
        columns = Columns.of(shape) if len(values) >= MANY and shape is not None else None
        if columns is not None and shape is not None and all(type(value) is spec.cls for value in values):
            rows = list(map(shape.pack, values))
            if columns.fit(list(zip(*rows, strict=True))):
                yield from columns.write(rows, self._writing.blobs)
                return
        for index, value in enumerate(values, start):
            yield self._writing.value(value, spec.cls, f"{where}[{index}]")

    def _keyframe(self, packed: PackedMark) -> Json:
        mark = packed.open(self._unpacked)
        return {"seq": mark.seq, "state": self.table(mark.state), "logs": self.table(mark.logs)}

    def _snapshot(self, entry: SnapshotEntry) -> Json:
        row = entry.row(self.table(entry.state))
        if entry.externals:
            where = f"the snapshot {entry.snapshot_id!r}"
            row["externals"] = self._writing.value(entry.externals, tuple, where)
        return row


@define
class Part:
    """One row of a slice: values, then the numbers of records whose events are values. `end` counts the values."""

    items: JsonArray
    records: JsonArray | None = None
    end: int = 0

    def add_numbers(self, text: bytes, spool: Spool) -> None:
        """Add numbers of records, separated by commas."""
        self.records = self.records or JsonArray(spool)
        self.records.add([text])


def _are_events(shape: Shape, values: list[Any], events: list[tuple[Any, ...]]) -> bool:
    """Return whether values are the events of records and hold the identical objects, as most do."""
    if {*map(type, values)} != {shape.cls}:
        return False
    return all(map(is_, chain.from_iterable(map(shape.pack, values)), chain.from_iterable(events)))


def _is_event(shape: Shape, own: tuple[Any, int, tuple[Any, ...]]) -> bool:
    """Return whether a value is the event of a record, given with its number and fields."""
    value, _, recorded = own
    if type(value) is not shape.cls:
        return False
    fields = shape.pack(value)
    return are_same(fields, recorded) or difference(fields, recorded, "") is None


def _by_tag(spec: SliceSpec) -> str:
    return spec.tag
