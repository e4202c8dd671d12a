"""Reading frames: decoding them, and applying them to a timeline.

Frames whose records are plain are read together, one field at a time, and reduced in one run. Any other frame is
applied by itself: its states are relative to the state before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from attrs import field

from weakfs.class_decorators import define
from weakfs.platforms import garbage_collection_paused
from weakfs.session.blobs.rope import without_ropes
from weakfs.session.codec.blob_table import Json
from weakfs.session.codec.decoder import Reading
from weakfs.session.codec.expansion_limit import unlimited
from weakfs.session.durable.frames.decoder import Frame, FrameDecoder, parsed
from weakfs.session.durable.frames.state_difference import pools_that_compare, read_values
from weakfs.session.errors import SessionFileError, UnknownTag, UnsupportedVersion
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.reduction import Row, advance, changed, event_of
from weakfs.session.history.snapshot_table import SnapshotEntry
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.events import Merged
from weakfs.session.slices.log import STRETCH, Deferred, Packed
from weakfs.session.slices.table import EMPTY_TABLE, Table

# The fields of a frame that only adds records.
PLAIN = frozenset({"id", "after", "counter", "fields", "rows", "blobs"})
# All fields. A field that a later version adds may change the state in a way unknown to this version.
FIELDS = PLAIN | {"installed", "slices", "snapshots", "dropped", "externals", "part", "reset"}
SHAPES: dict[str, type] = {"dropped": list, "externals": list, "slices": dict, "snapshots": list}
# Up to this many records are applied one by one.
FEW = 8
# How many plain frames are decoded together: few enough to stay in the cache of the processor.
TOGETHER = 256
# How many plain records are reduced in one run.
BATCH = 16_384


@define(eq=False)
class FrameReader:
    """Applies frames to `line`, which nothing else sees until all of them are applied."""

    decoder: FrameDecoder
    line: Timeline
    counter: int
    # Whether the whole timeline was read from storage: its checkpoints are then created when they are needed.
    is_new: bool = False
    # Called with each frame, its number and its size.
    note: Callable[[int, Frame, int], object] | None = None
    # Returns the timeline and the rules for a frame that starts with a new document.
    reset: Callable[[int, Frame], tuple[Timeline, Rules]] | None = None
    # Records that have been decoded but not applied yet, and whether there are contents among them that have not been
    # read.
    _rows: list[Row] = field(factory=list[Row], init=False)
    _are_unread: bool = field(default=False, init=False)

    @property
    def rules(self) -> Rules:
        """The rules with the slices that frames installed."""
        return self.decoder.rules

    def apply(self, frames: Iterable[tuple[int, bytes]], after: int) -> int:
        """Apply the frames after frame `after`, given with their numbers. Return the last number; 0 if there are none.

        A compaction may delete old frames while they are read. The frames from such a gap to the next reset are
        skipped: the document of the reset contains their changes. Raises `SessionFileError` naming the frame that
        cannot be read.
        """
        last, previous, gap = 0, after, 0
        plain: list[tuple[int, Frame]] = []
        with garbage_collection_paused():
            for number, data in frames:
                frame = parsed(number, data)
                if self.note is not None:
                    self.note(number, frame, len(data))
                last = number
                if number != previous + 1:
                    gap = previous + 1
                previous = number
                if not gap and PLAIN.issuperset(frame) and self.decoder.is_plain(frame):
                    plain.append((number, frame))
                    if len(plain) == TOGETHER:
                        self._decode(plain)
                        plain = []
                    continue
                is_after_gap = gap > 0
                if "reset" in frame:
                    gap = 0
                elif gap:
                    continue
                if "part" in frame:
                    # The next document contains the changes of these frames.
                    continue
                self._decode(plain)
                plain = []
                self._reduce()
                self._apply_one(number, frame, is_after_gap=is_after_gap)
            if gap:
                raise SessionFileError("it is missing, and no compaction has replaced it", where=f"frame {gap}")
            self._decode(plain)
            self._reduce()
        return last

    def _decode(self, frames: Sequence[tuple[int, Frame]]) -> None:
        """Decode frames that only add plain records."""
        if not frames:
            return
        seq = self.line.seq + len(self._rows)
        for number, frame in frames:
            _check_place(number, frame, seq)
            seq += len(frame.get("rows", ()))
            self.counter = max(self.counter, frame["counter"])
        where = f"frames {frames[0][0]} to {frames[-1][0]}"
        plain = [frame for _, frame in frames]
        rows, are_unread = self.decoder.plain_rows(plain, where, may_be_unread=self.is_new)
        self._rows += rows
        self._are_unread |= are_unread
        if len(self._rows) >= BATCH:
            self._reduce()

    def _reduce(self) -> None:
        """Add the decoded records to the timeline: many are reduced in one run."""
        line, rows = self.line, self._rows
        if not rows:
            return
        parts: Iterable[Packed[Row]] = ()
        if self._are_unread:
            parts = [Deferred(rows[start : start + STRETCH], without_ropes) for start in range(0, len(rows), STRETCH)]
        if self.is_new and len(rows) > FEW:
            mark = Mark(line.seq, line.state, line.logs, 0)
            after = next(advance(self.rules, mark, rows, (line.seq + len(rows),)))
            line.rows = line.rows._with_stretches(parts) if self._are_unread else line.rows.extend(rows)
            line.state, line.logs = after.state, after.logs
        else:
            for row in chain.from_iterable(part.load() for part in parts) if self._are_unread else rows:
                line.add(row, *changed(self.rules, line.state, line.logs, event_of(self.rules, row)))
        self._rows, self._are_unread = [], False

    def _apply_one(self, number: int, frame: Frame, *, is_after_gap: bool) -> None:
        line = self.line
        where = f"frame {number}"
        if unknown := frame.keys() - FIELDS - {pool.section for pool in self.rules.registry.pools}:
            raise UnsupportedVersion(
                f"it has the unknown field {min(unknown)!r:.60}; use a newer release of weakfs", where=where
            )
        if any(type(frame.get(name, kind())) is not kind for name, kind in SHAPES.items()):
            raise SessionFileError("a field is malformed", where=where)
        if not is_after_gap:
            _check_place(number, frame, line.seq)
        if "reset" in frame and self.reset is not None:
            self.line, self.decoder.rules = self.reset(number, frame)
            self.counter = max(self.counter, frame["counter"])
            return
        reading = self.decoder.reading(self.decoder.blobs(frame.get("blobs", [])), frame)
        self._install(frame.get("installed", ()), reading, where)
        before = line.copy()
        reading.table = lambda row: self._state(row, before, None, reading)
        block_end, contents = 0, self.decoder.contents_in([frame])
        for written in frame.get("rows", ()):
            row = self.decoder.row(frame, written, reading, contents, where)
            event = event_of(self.rules, row)
            seq = line.seq + 1
            inside = seq <= block_end
            state, logs = changed(self.rules, line.state, line.logs, event, logs_only=inside)
            is_merge = type(event) is Merged and not inside
            if is_merge:
                block_end = seq + event.count
            line.add(row, state, logs, mark=is_merge, block_end=block_end if is_merge else 0)
            if seq == block_end:
                line.add_keyframe(Mark(seq, line.state, line.logs, block_end))
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
            shape = self.decoder.shape(row["tag"])
            self.decoder.rules = self.rules.install(shape.cls, tag=row["tag"], kind=row["kind"])
            for item in row["initial"]:
                self.decoder.rules = self.rules.install(shape.cls, initial=reading.value(item, shape.cls, where))

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
        pools = pools_that_compare(self.rules.registry)
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


def _check_place(number: int, frame: Frame, seq: int) -> None:
    if frame["after"] != seq:
        raise SessionFileError(
            f"it follows record {frame['after']!r:.60} and not record {seq}: frames are missing or were mixed up",
            where=f"frame {number}",
        )


def undeclared_slices(rules: Rules) -> frozenset[str]:
    """Return the slices with a reducer that is neither declared by the registry nor marked by the slice type.

    A program registers such a reducer after opening, so records cannot be reduced before that.
    """
    known = Rules.of(rules.registry)
    for spec in rules.specs.values():
        known = known.install(spec.cls, tag=spec.tag, kind=spec.kind)
    found: set[str] = set()
    for event, steps in rules.steps.items():
        declared = {step.tag for step in known.steps.get(event, ())}
        found |= {step.tag for step in steps if step.tag not in declared}
    return frozenset(found)
