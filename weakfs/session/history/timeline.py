"""Timelines: the current slices, the rows that led to them, and keyframes to read the past from.

A session has one timeline; a transaction and a fork each work on a branch of it, which costs O(1) because everything in
a timeline is an immutable value. Rows are plain tuples of atoms, `(at, cause, tag, fields)`, which the garbage
collector stops tracking (with 300,000 records, a full collection takes 160 to 390 ms if they are objects, and 8 ms if
they are tuples); `Record` views are built when they are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from attrs import evolve, field
from pyrsistent import PMap, pmap

from weakfs.class_decorators import define
from weakfs.session.history.keyframes import STRETCH, Keyframes, Mark, PackedMark
from weakfs.session.history.loaded_past import NO_KEYFRAMES, NO_MARKS, Past
from weakfs.session.history.packed_rows import Packing
from weakfs.session.history.record_numbers import Numbering, Shift
from weakfs.session.history.reduction import Row
from weakfs.session.history.snapshot_table import SnapshotEntry, SnapshotTable
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import EMPTY_TABLE, Table

# Immutable values that many timelines share.
NO_ROWS = Log[Row]()
NO_SHIFTS = Log[Shift]()
NO_IDS = Log[str]()


@define(eq=False)
class Point:
    """Where a branch left its timeline: what a merge compares with."""

    state: Table
    rows: Log[Row]
    seq: int
    snapshots: SnapshotTable
    # How many snapshots had been taken or dropped by then: see `Timeline.touched`.
    touched: int = 0
    # The record numbers of the timeline that was left, and how earlier merges shifted those of the branch.
    numbering: Numbering = field(factory=Numbering)
    shifts: Log[Shift] = NO_SHIFTS


@define(eq=False)
class Timeline:
    """State, records, keyframes and snapshots of one timeline."""

    state: Table = EMPTY_TABLE
    logs: Table = EMPTY_TABLE
    rows: Log[Row] = NO_ROWS
    # The state before the first row: what a compacted history starts with.
    base: Mark = Mark(0, EMPTY_TABLE, EMPTY_TABLE, 0)
    keyframes: Keyframes = Keyframes()
    snapshots: SnapshotTable = SnapshotTable()
    # The records that were read rather than made, and their keyframes.
    past: Past = Past()
    # Records up to this number belong to a merged fork: see `Merged`.
    block_end: int = 0
    # Snapshots of attached filesystems from before a rollback, by the record that it followed.
    externals: PMap[int, tuple[tuple[str, Any], ...]] = pmap()
    # The cause of records that name none: a transaction's cause.
    cause: str | None = None
    # The ids of snapshots that were taken or dropped on a branch, so that the cost of merging it depends on what
    # changed and not on how many are kept; `None` on a timeline that is never merged.
    touched: Log[str] | None = None
    # Identifies the record numbers: the same object for the life of the timeline.
    numbering: Numbering = field(factory=Numbering)
    # The stretches of the records and the LOG slices that are still to be packed.
    packing: Packing = field(factory=Packing)

    @property
    def dropped(self) -> int:
        """The number of the newest record that was compacted away, 0 if none was."""
        return self.base.seq

    @property
    def seq(self) -> int:
        """The number of the newest record, 0 before the first."""
        return self.base.seq + self.rows._length

    def point(self) -> Point:
        """Return the current position of this timeline. O(1)."""
        touched = 0 if self.touched is None else len(self.touched)
        rows = self.rows
        return Point(self.state, rows, self.base.seq + rows._length, self.snapshots, touched, self.numbering)

    def branch(self, *, is_fork: bool) -> Timeline:
        """Return a timeline that starts here and will be merged later: of a fork, or of a transaction. O(1)."""
        return Timeline(
            self.state,
            self.logs,
            self.rows,
            self.base,
            self.keyframes,
            self.snapshots,
            self.past,
            self.block_end,
            self.externals,
            None,
            NO_IDS if self.touched is None else self.touched,
            Numbering() if is_fork else Numbering.inside(self.numbering, self.base.seq + self.rows._length),
            self.packing,
        )

    def copy(self) -> Timeline:
        """Return an independent copy of this timeline, which can replace it in one step. O(1)."""
        copied = self.branch(is_fork=True)
        copied.cause, copied.touched, copied.numbering = self.cause, self.touched, self.numbering
        return copied

    def keep_snapshot(self, entry: SnapshotEntry) -> None:
        """Add a snapshot to the table, in place of one with the same id."""
        self.snapshots = self.snapshots.discard(entry.snapshot_id)
        self.add_snapshot(entry)

    def add_snapshot(self, entry: SnapshotEntry) -> None:
        """Add a snapshot whose id is new to the table."""
        self.snapshots = self.snapshots.add(entry)
        if self.touched is not None:
            self.touched = self.touched.append(entry.snapshot_id)

    def forget_snapshot(self, snapshot_id: str) -> None:
        """Remove a snapshot from the table, if it is there."""
        self.snapshots = self.snapshots.discard(snapshot_id)
        if self.touched is not None:
            self.touched = self.touched.append(snapshot_id)

    def touches_snapshots_since(self, base: Point) -> bool:
        """Return whether this branch took or dropped a snapshot since it was at `base`."""
        return self.touched is not None and len(self.touched) > base.touched

    def adopt(self, branch: Timeline) -> None:
        """Continue from the end of `branch`, which must have started at the current end of this timeline.

        Snapshots are kept.
        """
        self.state, self.logs, self.rows = branch.state, branch.logs, branch.rows
        self.keyframes, self.past, self.block_end = branch.keyframes, branch.past, branch.block_end
        self.externals, self.packing = branch.externals, branch.packing

    def add(self, row: Row, state: Table, logs: Table, *, mark: bool = False, block_end: int = 0) -> int:
        """Append a row with the resulting tables, and return its number."""
        self.rows = rows = self.rows.append(row)
        self.state, self.logs = state, logs
        seq = self.base.seq + rows._length
        if mark or seq >= self.keyframes.wakes_at:
            if mark or seq - self.keyframes.thinned >= STRETCH:
                self.add_keyframe(Mark(seq, state, logs, block_end))
            else:
                self.keyframes = self.keyframes.continued(seq)
        stretch = rows._stretch
        used = rows._length - stretch.start
        if used == 1 or used >= stretch.limit:
            # The row started a stretch, or the next one will.
            self.packing = self.packing.advanced(rows, logs)
        return seq

    def pack_loaded(self) -> None:
        """Pack the history that was read from a file."""
        self.packing, logs = Packing.of_history(self.rows, self.logs)
        base = self.base.logs
        for tag, values in logs.items():
            known = base.get(tag)
            if known is not None and self.logs[tag].extends(known):
                base = base.set(tag, values.prefix(len(known)))
            self.logs = self.logs.set(tag, values)
        self.base = Mark(self.base.seq, self.base.state, base, self.base.block_end)

    def add_merged(self, rows: Iterable[Row], logs: Table) -> None:
        """Append the rows of a fork after the row of its merge, with the resulting LOG slices."""
        before = self.rows
        self.rows, self.logs = before.extend(rows), logs
        if self.rows.stretch_count > before.stretch_count:
            self.packing = self.packing.advanced(self.rows, logs)

    def add_keyframe(self, mark: Mark) -> None:
        """Keep a past state: see `weakfs.session.history.keyframes`."""
        if mark.seq - self.keyframes.thinned >= STRETCH:
            self.keyframes = self.keyframes.thinned_with(mark, self.rows, self.base)
        else:
            self.keyframes = self.keyframes.with_mark(mark)

    def rules_change(self, old: Rules, new: Rules) -> None:
        """Apply other rules from now on: records made under the old rules are still read with the old rules.

        Loaded records are read with the new rules; see `Past.rules_at`. If nothing was recorded since, their keyframes
        are kept only if a file may store them: a file does not record when a slice was installed.
        """
        if not self.rows:
            return
        past = self.past
        if self.seq == past.loaded:
            self.forget_keyframes(past.lasting if past.suits(new) else NO_MARKS)
        elif not past.eras or past.eras[-1][0] < self.seq:
            self.past = evolve(past, eras=(*past.eras, (self.seq, old)), made=NO_KEYFRAMES)
        else:
            self.past = evolve(past, made=NO_KEYFRAMES)

    def forget_keyframes(self, lasting: Log[PackedMark] = NO_MARKS) -> None:
        """Drop all keyframes except for the lasting ones. They are rebuilt when they are needed."""
        self.past = self.past.until(self.seq, lasting)
        now = Mark(self.seq, self.state, self.logs, self.block_end)
        wakes_at = self.seq + STRETCH
        self.keyframes = Keyframes(
            Log((now,)), thinned=self.seq, start=now, last_loaded=lasting.last(), wakes_at=wakes_at
        )

    def settle_history(self, mark: Mark, lasting: Iterable[Any]) -> None:
        """Replace the keyframes up to `mark` with others that are stored outside memory."""
        self.past = self.past.until(mark.seq, Log(lasting))
        self.keyframes = evolve(self.keyframes.behind(mark.seq), start=mark)

    @property
    def all_lasting(self) -> tuple[PackedMark, ...]:
        """The keyframes that a file stores, oldest first: none if the rules changed, which a file does not record."""
        marks = (*self.past.lasting, *self.keyframes.lasting)
        return () if self.past.eras else tuple(mark for mark in marks if isinstance(mark, PackedMark))


def ordered_snapshots(line: Timeline) -> list[SnapshotEntry]:
    """List the snapshots of a timeline in the order in which they were taken."""
    return sorted(line.snapshots.values(), key=attrgetter("age"))
