"""The ancestry of records: in the log, a fork's records come after its merge, not after the state that they changed.

The state after a record is identified by the number of the record, in the fork that made it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from attrs import field

from weakfs.class_decorators import define
from weakfs.history.record_states import Blocks
from weakfs.session import Merged


@define
class _Kept:
    """The records after which a session or fork had a state, as ranges of numbers."""

    first: list[int] = field(factory=list[int])
    last: list[int] = field(factory=list[int])

    def add(self, seq: int) -> None:
        if self.last and seq - self.last[-1] in (0, 1):
            self.last[-1] = seq
        else:
            self.first.append(seq)
            self.last.append(seq)

    def __contains__(self, seq: int) -> bool:
        place = bisect_right(self.first, seq) - 1
        return place >= 0 and seq <= self.last[place]


@define(eq=False)
class Ancestry:
    """The records of a session, each with the state that it changed. Filled by `add`, in order."""

    _owner: str
    # The newest dropped record, and the last record of a merge whose own record was dropped.
    dropped: int
    _block_end: int
    # The records that did not change the state after the previous record, and the state that each changed instead.
    _starts: list[int] = field(factory=list[int], init=False)
    _parents: list[int | None] = field(factory=list["int | None"], init=False)
    # The last record of each merge, and the merges that are not inside other merges.
    _last: dict[int, int] = field(factory=dict[int, int], init=False)
    _merges: list[int] = field(factory=list[int], init=False)
    _kept: dict[str, _Kept] = field(factory=dict[str, _Kept], init=False)
    # The state after the last record of a merge, by the fork that sees it.
    _ends: dict[tuple[str, int], int] = field(factory=dict[tuple[str, int], int], init=False)
    # The state of the fork that was merged, by merge.
    _taken: dict[int, int | None] = field(factory=dict[int, "int | None"], init=False)
    # The record after which the fork of each merge first branched off, by merge and by the name of the fork.
    _left: dict[int, int] = field(factory=dict[int, int], init=False)
    _first_left: dict[str, int] = field(factory=dict[str, int], init=False)
    # The merges to which the newest record belongs, outermost first.
    _open: list[int] = field(factory=list[int], init=False)
    _blocks: Blocks = field(init=False)
    _now: int | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._blocks = Blocks(self._owner)
        self._now = self.dropped
        self._keep(self.dropped)
        if self._block_end > self.dropped:
            self._blocks.begin_inside(self._block_end, None)
            self._open.append(self.dropped)
            self._last[self.dropped] = self._block_end
            self._merges.append(self.dropped)
            self._now = None

    def add(self, seq: int, merged: Merged | None) -> None:
        """Add the next record; `merged` is its event if that is a merge."""
        if self._now != seq - 1:
            self._starts.append(seq)
            self._parents.append(self._now)
        self._now = seq
        self._keep(seq)
        if merged is not None and merged.count:
            base = self._find(self._blocks.base_of(merged), merged.fork)
            self._left[seq] = self._first_left.setdefault(merged.fork, merged.base)
            self._blocks.enter(seq, merged, None)
            self._open.append(seq)
            self._last[seq] = seq + merged.count
            if len(self._open) == 1:
                self._merges.append(seq)
            self._now = base
        for _ in self._blocks.leave(seq):
            merge = self._open.pop()
            self._taken[merge], self._now = self._now, merge
            self._ends[self._blocks.inside, seq] = merge
            self._keep(seq)

    def _keep(self, seq: int) -> None:
        self._kept.setdefault(self._blocks.inside, _Kept()).add(seq)

    def _find(self, seq: int, fork: str) -> int | None:
        """Return the state after a record as seen by the fork or, failing that, the forks around it or the session."""
        for name in (fork, *(block.fork for block in reversed(self._blocks.open)), self._owner):
            if seq in self._kept.get(name, ()):
                return self._ends.get((name, seq), seq)
        return None

    def before(self, seq: int) -> int | None:
        """Return the state that a record changed; `None` if it was compacted away."""
        place = bisect_right(self._starts, seq) - 1
        return self._parents[place] if place >= 0 and self._starts[place] == seq else seq - 1

    def last_of(self, seq: int) -> int | None:
        """Return the last of the records that a merge added; `None` if it added none."""
        return self._last.get(seq)

    def left_at(self, seq: int) -> int:
        """Return the record after which the fork of a merge first branched off."""
        return self._left[seq]

    def taken_by(self, seq: int) -> int | None:
        """Return the state of the fork that was merged; `None` if it was compacted away."""
        return self._taken[seq]

    def in_effect(self, seq: int) -> int:
        """Return the state of the session itself after a record; for a record of a merged fork, the merge's result."""
        place = bisect_right(self._merges, seq) - 1
        return self._merges[place] if place >= 0 and self._last[self._merges[place]] >= seq else seq

    def ranges(self, seq: int | None) -> Iterator[tuple[int, int]]:
        """Yield the ranges of consecutive records that led to a state, newest first."""
        while seq is not None:
            place = bisect_right(self._starts, seq) - 1
            first = self._starts[place] if place >= 0 else self.dropped
            yield first, seq
            if place < 0:
                return
            seq = self._parents[place]

    def ancestor(self, seq: int | None, wanted: int) -> int | None:
        """Return the state to which record number `wanted` refers, among those that led to state `seq`."""
        for first, last in self.ranges(seq):
            if wanted >= first:
                # The numbers of merged records, which follow their merge, refer to the state after it.
                return min(wanted, last)
        return None
