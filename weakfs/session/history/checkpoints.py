"""Checkpoints: the states that a line of history keeps of its past, so that every record is near one of them.

Two rules choose them. Near the present there is one for each 512 records, thinned out to some two for each power of
two further back: these cost little, whatever the states are like. Of the others one is kept for good every 4,096
records, so that reading any moment replays no more than that, unless the states differ so much that keeping them
would make history a good deal larger than its records: then they lie further apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import attrs
from attrs import define, evolve, frozen
from pyrsistent import PMap

from weakfs.session.history.log import Log
from weakfs.session.slices.table import Table

# Near the present there is a checkpoint for so many records.
STRETCH = 512
# In the past there is one for so many, if its states are small beside the records.
GAP = 4096
# What keeping checkpoints for good may cost, as a part of the memory that the records take.
SHARE = 0.25
# What a record takes in memory beside the text and bytes in it.
RECORD_SIZE = 250


@define(eq=False)
class Mark:
    """The slices after record `seq`. Records up to `block_end` tell of a merged fork: see `Merged`."""

    seq: int
    state: Table
    logs: Table
    block_end: int
    # Whether it is kept for good.
    is_kept: bool = False


@runtime_checkable
class Weighed(Protocol):
    """A value of which versions share a good deal."""

    def weight_beside(self, other: Any, counted: set[int]) -> int:
        """Give about how many bytes this version takes that `other`, of the same type, does not.

        Contents whose identity is `counted` take nothing.
        """
        ...


@frozen(eq=False)
class Checkpoints:
    """The checkpoints of one line of history, oldest first. An immutable value."""

    marks: Log[Mark] = attrs.field(factory=lambda: Log[Mark]())
    # The number of the newest record at which they were thinned out.
    thinned: int = 0
    # The number of the newest one that is kept for good, and how many records behind it the next may be.
    kept: int = 0
    distance: int = GAP

    def with_mark(self, mark: Mark) -> Checkpoints:
        """Add a checkpoint until they are thinned out next."""
        return evolve(self, marks=self.marks.append(mark))

    def thinned_with(self, mark: Mark, rows: Log[Any], base: Mark, boundaries: Iterable[int] = ()) -> Checkpoints:
        """Add a checkpoint and thin out the others. `rows` are the records behind `base`.

        Every one keeps directories alive that later ones share no more. One each 512 records, over 100,000 files
        and 50,000 writes, are 300,000 objects for the garbage collector to look at, and 400 ms.
        """
        now = mark.seq // STRETCH
        own = {*boundaries}
        left: list[Mark] = []
        before = -1
        for known in self.marks:
            stretch = known.seq // STRETCH
            is_near = stretch != before and now - stretch <= 2 * (stretch & -stretch)
            if known.is_kept or known.seq in own or is_near:
                left.append(known)
            before = stretch
        kept, distance = max(self.kept, base.seq), self.distance
        if mark.seq - kept >= distance:
            last = next((known for known in reversed(left) if known.is_kept), base)
            if _is_worth_it(mark, last, islice(rows.since(kept - base.seq), mark.seq - kept)):
                mark.is_kept = True
                kept, distance = mark.seq, GAP
            else:
                distance *= 2
        return Checkpoints(Log((*left, mark)), mark.seq, kept, distance)

    def before(self, seq: int) -> Mark | None:
        """Give the newest checkpoint that is not behind record `seq`."""
        low, high = 0, len(self.marks)
        while low < high:
            middle = (low + high) // 2
            if self.marks[middle].seq <= seq:
                low = middle + 1
            else:
                high = middle
        return self.marks[low - 1] if low else None

    def behind(self, seq: int) -> Checkpoints:
        """Give those behind record `seq`."""
        return evolve(self, marks=Log(mark for mark in self.marks if mark.seq > seq))

    def with_logs(self, change: Callable[[Table], Table]) -> Checkpoints:
        """Give the same checkpoints with other LOG slices."""
        marks = Log(Mark(mark.seq, mark.state, change(mark.logs), mark.block_end, mark.is_kept) for mark in self.marks)
        return evolve(self, marks=marks)


def _is_worth_it(mark: Mark, last: Mark, rows: Iterable[Any]) -> bool:
    """Tell whether a state is small beside the records since the last one that is kept."""
    size = 0
    counted: set[int] = set()
    for row in rows:
        size += RECORD_SIZE
        for value in row[3]:
            if type(value) is bytes or type(value) is str:
                size += len(value)
                counted.add(id(value))
    return weight_of(mark.state, last.state, counted) <= SHARE * size


def weight_of(one: Any, other: Any, counted: set[int]) -> int:
    """Give about how many bytes a value takes that another one does not; what the two share takes nothing."""
    if one is other:
        return 0
    if isinstance(one, Weighed) and type(one) is type(other):
        return one.weight_beside(other, counted)
    if isinstance(one, dict | PMap | MappingProxyType):
        old: Mapping[Any, Any] = other if isinstance(other, dict | PMap | MappingProxyType) else {}
        return sum(weight_of(value, old.get(key), counted) for key, value in one.items())
    if isinstance(one, Log):
        # One that grows shares its items; what it has gained is in the records.
        return weight_of(one.last(), other.last() if isinstance(other, Log) else None, counted)
    if isinstance(one, tuple):
        items = other if isinstance(other, tuple) else ()
        return sum(
            weight_of(value, items[place] if place < len(items) else None, counted) for place, value in enumerate(one)
        )
    if attrs.has(type(one)):
        names = [own.name for own in attrs.fields(type(one))]
        return sum(weight_of(getattr(one, name), getattr(other, name, None), counted) for name in names)
    return 0 if id(one) in counted or not isinstance(one, bytes | str) else len(one)
