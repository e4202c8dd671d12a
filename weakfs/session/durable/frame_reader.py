"""Reading frames: decoding them, and applying them to a timeline.

Frames whose records are plain are read together, a field at a time, and reduced in one run. Any other is applied by
itself: its states are relative to the one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson
from attrs import define, field
from weakfs.session.blobs.blob import ContentSource
from weakfs.session.blobs.rope import Content
from weakfs.session.codec.columns import Columns
from weakfs.session.codec.decoding import Reading
from weakfs.session.codec.shared_values import Json, read_blobs
from weakfs.session.durable.state_difference import pools_that_compare, read_values
from weakfs.session.errors import SessionFileError, UnknownTag, UnknownType
from weakfs.session.events import Merged
from weakfs.session.files.expansion import unlimited
from weakfs.session.history.garbage_collection import collector_at_rest
from weakfs.session.history.reduction import Row, advance, changed
from weakfs.session.history.checkpoints import Mark
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.registry import Shape
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.table import EMPTY_TABLE, Table

# The fields of a frame that only adds records.
PLAIN = frozenset({"id", "after", "counter", "records", "blobs"})
# How many plain frames are reduced in one run.
BATCH = 4096

ReadContents = Callable[[Iterable[str]], "dict[str, bytes]"]


@define(eq=False)
class FrameReader:
    """Applies frames to `line`, which nothing else sees until all are applied."""

    rules: Rules
    line: Timeline
    counter: int
    # Returns contents by digest, and the source of blobs that are read when they are needed.
    read_contents: ReadContents
    source: ContentSource
    # Whether the timeline was read from a storage as a whole: its checkpoints are then made when they are needed.
    is_new: bool = False
    _reading: Reading | None = field(default=None, init=False)
    _pools: dict[type, tuple[Any, list[Any]]] = field(factory=dict, init=False)
    _columns: dict[str, Columns | None] = field(factory=dict, init=False)

    def apply(self, frames: Iterable[tuple[int, bytes]]) -> int:
        """Apply frames, given with their numbers, and return the number of the last one; 0 if there is none.

        Raise `SessionFileError` naming the frame that cannot be read.
        """
        last = 0
        plain: list[tuple[int, dict[str, Json]]] = []
        with collector_at_rest():
            for number, data in frames:
                frame = parsed(number, data)
                if self._is_plain(frame):
                    plain.append((number, frame))
                    if len(plain) >= BATCH:
                        self._apply_plain(plain)
                        plain = []
                else:
                    self._apply_plain(plain)
                    plain = []
                    self._apply_one(number, frame)
                last = number
            self._apply_plain(plain)
        return last

    def _is_plain(self, frame: dict[str, Json]) -> bool:
        return PLAIN.issuperset(frame) and all(
            self._columns_of(record["type"]) is not None for record in frame.get("records", ())
        )

    def _columns_of(self, tag: str) -> Columns | None:
        if tag not in self._columns:
            self._columns[tag] = Columns.of(self._shape(tag))
        return self._columns[tag]

    def _shape(self, tag: Json) -> Shape:
        if type(tag) is not str:
            raise SessionFileError(f"expected a tag as text, not {tag!r:.60}", where="$.type")
        try:
            return self.rules.registry.shape(tag)
        except UnknownType as error:
            raise UnknownTag(str(error), where="$.type") from None

    def _apply_plain(self, frames: Sequence[tuple[int, dict[str, Json]]]) -> None:
        """Apply frames that only add plain records, all at once."""
        if not frames:
            return
        seq = self.line.seq
        records: list[dict[str, Json]] = []
        rows_of_blobs: list[Json] = []
        for number, frame in frames:
            _check_place(number, frame, seq + len(records))
            shift = len(rows_of_blobs)
            own = frame.get("records", [])
            blobs = frame.get("blobs")
            if blobs:
                rows_of_blobs += blobs
                if shift:
                    _renumber(own, shift)
            records += own
            self.counter = max(self.counter, frame["counter"])
        blobs = self._blobs(rows_of_blobs)
        rows = self._rows(records, blobs, f"frame {frames[0][0]} to {frames[-1][0]}")
        self._extend(rows)

    def _extend(self, rows: list[Row]) -> None:
        """Add rows to the timeline, and reduce them."""
        line = self.line
        if not rows:
            return
        if self.is_new and len(rows) > 8:
            mark = Mark(line.seq, line.state, line.logs, 0)
            after = next(advance(self.rules, mark, rows, (line.seq + len(rows),)))
            line.rows = line.rows.extend(rows)
            line.state, line.logs = after.state, after.logs
            return
        for row in rows:
            event = self.rules.registry.shape(row[2]).build(*row[3])
            line.add(row, *changed(self.rules, line.state, line.logs, event))

    def _rows(self, records: Sequence[dict[str, Json]], blobs: Sequence[Content], where: str) -> list[Row]:
        """Read plain records a field at a time."""
        places: dict[str, list[int]] = {}
        for place, record in enumerate(records):
            places.setdefault(record["type"], []).append(place)
        values: list[Any] = [None] * len(records)
        for tag, own in places.items():
            columns = self._columns_of(tag)
            read = columns and columns.read([records[place]["event"] for place in own], blobs, unlimited())
            if read is None:
                read = [self._values(records[place], blobs, where) for place in own]
            for place, value in zip(own, read, strict=True):
                values[place] = value
        try:
            rows = [
                (record["at"], record["cause"], record["type"], value)
                for record, value in zip(records, values, strict=True)
            ]
        except (KeyError, TypeError):
            raise SessionFileError("a record lacks its time, cause or type", where=where) from None
        if any(type(row[0]) is not int or type(row[1]) not in (str, type(None)) for row in rows):
            raise SessionFileError("a record's time is no number, or its cause no text", where=where)
        return rows

    def _values(self, record: dict[str, Json], blobs: Sequence[Content], where: str) -> tuple[Any, ...]:
        shape = self._shape(record["type"])
        event = self._read_with(blobs, {}).value(record["event"], shape.cls, where)
        return shape.pack(event)

    def _blobs(self, rows: list[Json]) -> list[Content]:
        """Return the blobs of frames; contents are read from the storage at once."""
        digests = {row["content"] for row in rows if type(row) is dict and "content" in row}
        found = self.read_contents(digests) if digests else {}
        blobs: list[Content] = []
        for row in rows:
            if type(row) is str:
                blobs.append(row.encode())
            elif type(row) is dict and row.keys() == {"content", "size"}:
                blobs.append(found[row["content"]])
            else:
                blobs += read_blobs([row], self.source)
        return blobs

    def _read_with(self, blobs: Sequence[Content], frame: dict[str, Json]) -> Reading:
        """Return the decoder of one frame's values."""
        pools = self.rules.registry.pools
        if self._reading is None or {pool.cls for pool in pools} != self._pools.keys():
            self._pools = {pool.cls: (pool, []) for pool in pools}
            self._reading = Reading(self.rules.registry, blobs, self._pools)
        reading = self._reading
        reading.registry, reading.blobs = self.rules.registry, blobs
        for pool, values in self._pools.values():
            values[:] = pool.read(frame.get(pool.section, []), blobs, unlimited())
        return reading

    def _apply_one(self, number: int, frame: dict[str, Json]) -> None:
        line = self.line
        where = f"frame {number}"
        _check_place(number, frame, line.seq)
        blobs = self._blobs(frame.get("blobs", []))
        reading = self._read_with(blobs, frame)
        self._install(frame.get("installed", ()), reading, where)
        before = line.copy()
        reading.table = lambda row: self._state(row, before, None, reading)
        block_end = 0
        for record in frame.get("records", ()):
            shape = self._shape(record["type"])
            event = reading.value(record["event"], shape.cls, where)
            seq = line.seq + 1
            inside = seq <= block_end
            state, logs = changed(self.rules, line.state, line.logs, event, logs_only=inside)
            is_merge = type(event) is Merged and not inside
            if is_merge:
                block_end = seq + event.count
            row = (record["at"], record["cause"], record["type"], shape.pack(event))
            line.add(row, state, logs, mark=is_merge, block_end=block_end if is_merge else 0)
            if seq == block_end:
                line.checkpoint(Mark(seq, line.state, line.logs, block_end))
        for tag, values in frame.get("slices", {}).items():
            self._set_slice(tag, values, reading)
        for gone in frame.get("dropped", ()):
            line.forget_snapshot(gone)
        reading.table = lambda row: self._state(row, before, line.state, reading)
        for row in frame.get("snapshots", ()):
            line.keep_snapshot(
                SnapshotEntry(
                    row["id"],
                    row["number"],
                    row["seq"],
                    row["at"],
                    row["tag"],
                    reading.table(row["state"]),
                    tuple(reading.any(row["externals"])) if "externals" in row else (),
                )
            )
        for seq, kept in frame.get("externals", ()):
            line.externals = line.externals.set(seq, reading.any(kept))
        self.counter = max(self.counter, frame["counter"])

    def _install(self, rows: Iterable[Json], reading: Reading, where: str) -> None:
        for row in rows:
            shape = self._shape(row["tag"])
            self.rules = self.rules.install(shape.cls, tag=row["tag"], kind=row["kind"])
            for item in row["initial"]:
                self.rules = self.rules.install(shape.cls, initial=reading.value(item, shape.cls, where))

    def _set_slice(self, tag: str, values: Json, reading: Reading) -> None:
        line = self.line
        is_log = self.rules.specs[tag].kind == "log"
        table = line.logs if is_log else line.state
        table = self._changed_table(table, {tag: values}, reading)
        if is_log:
            line.logs = table
        else:
            line.state = table

    def _state(self, row: Json, before: Timeline, after: Table | None, reading: Reading) -> Table:
        if row == {"state": "before"}:
            return before.state
        if row == {"state": "after"} and after is not None:
            return after
        if type(row) is dict and row.keys() == {"snapshot"}:
            return before.snapshots[row["snapshot"]].state
        if type(row) is dict and row.keys() == {"slices"}:
            return self._changed_table(before.state, row["slices"], reading)
        raise SessionFileError(f"this is not a state: {row!r:.60}", where="$.state")

    def _changed_table(self, table: Table, changes: dict[str, Json], reading: Reading) -> Table:
        pools = pools_that_compare(self.rules)
        for tag, row in changes.items():
            if row is None:
                table = without(table, tag)
                continue
            spec = self.rules.specs.get(tag)
            if spec is None:
                raise UnknownTag(f"the slice {tag!r} is not installed", where="$.slices")
            old = table.get(tag, spec.empty)
            pool = pools.get(spec.cls)

            def read(item: Json, cls: type = spec.cls) -> Any:
                return reading.value(item, cls, "$.slices")

            def change(value: Any, difference: Json, pool: Any = pool) -> Any:
                return pool.changed(value, difference, reading.blobs, unlimited())

            table = table.set(tag, read_values(old, row, read, change))
        return table


def without(table: Table, gone: str) -> Table:
    """Return a table without one slice. O(slices)."""
    rest = EMPTY_TABLE
    for tag, values in table.items():
        rest = rest if tag == gone else rest.set(tag, values)
    return rest


def parsed(number: int, data: bytes) -> dict[str, Json]:
    """Parse a frame."""
    try:
        frame = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise SessionFileError(f"this is not JSON: {error}", where=f"frame {number}") from None
    if type(frame) is not dict or not {"id", "after", "counter"}.issubset(frame):
        raise SessionFileError("this is not a frame of a session", where=f"frame {number}")
    return frame


def _check_place(number: int, frame: dict[str, Json], seq: int) -> None:
    if frame["after"] != seq:
        raise SessionFileError(
            f"it follows record {frame['after']!r:.60} and not record {seq}: frames are missing or were mixed up",
            where=f"frame {number}",
        )


def _renumber(records: Iterable[dict[str, Json]], shift: int) -> None:
    """Make the blobs of plain records those of a list that begins with `shift` others."""
    for record in records:
        for value in record["event"].values():
            if type(value) is dict and "blob" in value:
                value["blob"] += shift
