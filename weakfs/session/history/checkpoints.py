"""Checkpoints: the states that a line of history keeps of its past, so that every record is near one of them.

Two rules choose them. Since the last but one that is kept for good there is one for each 512 records, thinned out to
some two for each power of two further back: these cost little, whatever the states are like. One is kept for good
every 4,096 records, so that reading any moment replays no more than that, unless the states differ so much that
keeping them would cost nearly as much memory as the records: then they lie further apart. Those that are kept for
good are packed, so that the garbage collector need not look at them.

Some of those are lasting: a session file holds them, so that a loaded history is read without a replay of all of it.
Their states are small beside all records since the one before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from operator import attrgetter
from types import MappingProxyType, NoneType
from typing import Any, TypeVar

import attrs
from attrs import define, evolve, frozen
from pyrsistent import PMap, pmap

from weakfs.session.history.log import Log
from weakfs.session.history.packed_state import Counted, Packable, PackedValue
from weakfs.session.slices.table import Table

# Near the present there is a checkpoint for so many records.
STRETCH = 512
# In the past there is one for so many, if its states are small beside the records.
GAP = 4096
# What keeping checkpoints for good may cost, as a part of the memory that the records take.
SHARE = 0.75
# What the lasting ones may cost, as a part of the same.
LASTING_SHARE = 0.05
# What a record takes in memory beside the text and bytes in it.
RECORD_SIZE = 250


@define(eq=False)
class Mark:
    """The slices after record `seq`. Records up to `block_end` tell of a merged fork: see `Merged`."""

    seq: int
    state: Table
    logs: Table
    block_end: int


@frozen(eq=False)
class PackedMark:
    """A checkpoint that is kept for good."""

    seq: int
    state: Mapping[str, Log[Any] | PackedValue]
    logs: Table
    block_end: int

    def open(self, known: dict[int, Any] | None = None) -> Mark:
        """Return the slices again; see `Packable.unpack`."""
        state = {
            tag: values.values(known) if isinstance(values, PackedValue) else values
            for tag, values in self.state.items()
        }
        return Mark(self.seq, pmap(state), self.logs, self.block_end)


@frozen(eq=False)
class Checkpoints:
    """The checkpoints of one line of history, oldest first. An immutable value."""

    marks: Log[Mark] = attrs.field(factory=lambda: Log[Mark]())
    # Those that are kept for good.
    kept: Log[PackedMark] = attrs.field(factory=lambda: Log[PackedMark]())
    # The number of the newest record at which they were thinned out.
    thinned: int = 0
    # How many records after the last that is kept for good the next may be.
    distance: int = GAP
    # What the first of them is compared with, if it is not the state before the first record.
    start: Mark | PackedMark | None = None
    # Those that a file is to hold, and how many records after the last of them the next may be.
    lasting: Log[PackedMark] = attrs.field(factory=lambda: Log[PackedMark]())
    lasting_distance: int = GAP
    # Since then, the bytes that records take, and those of contents that no record holds.
    since: tuple[int, int] = (0, 0)
    # The lasting one before the first of them, if a file held any.
    last_told: PackedMark | None = None
    # Whether they are of a history that came from a file, which holds those that last.
    is_past: bool = False

    def with_mark(self, mark: Mark) -> Checkpoints:
        """Add a checkpoint until they are thinned out next."""
        return evolve(self, marks=self.marks.append(mark))

    def thinned_with(self, mark: Mark, rows: Log[Any], base: Mark, boundaries: Iterable[int] = ()) -> Checkpoints:
        """Add a checkpoint and thin out the others. `rows` are the records behind `base`."""
        made = self.kept_with(mark, rows, base)
        last = made.kept[-2].seq if len(made.kept) > 1 else 0
        now = mark.seq // STRETCH
        own = {*boundaries}
        left: list[Mark] = []
        before = -1
        for known in self.marks:
            stretch = known.seq // STRETCH
            is_near = known.seq > last and stretch != before and now - stretch <= 2 * (stretch & -stretch)
            if known.seq in own or is_near:
                left.append(known)
            before = stretch
        return evolve(made, marks=Log((*left, mark)), thinned=mark.seq)

    def due(self, base: Mark) -> int:
        """Return the number of the record from which on the next checkpoint may be kept for good."""
        return self._last(base).seq + self.distance

    def kept_with(self, mark: Mark, rows: Log[Any], base: Mark) -> Checkpoints:
        """Keep a checkpoint for good if it is due and small beside the records since the last one."""
        if mark.seq < self.due(base):
            return self
        last = self._last(base)
        size, counted = _size(islice(rows.since(last.seq - base.seq), mark.seq - last.seq))
        packed, weight = packed_mark(mark, last, counted)
        if weight > SHARE * size:
            return evolve(self, distance=2 * self.distance)
        since = (self.since[0] + size, self.since[1] + counted.others)
        kept = evolve(self, kept=self.kept.append(packed), distance=GAP, since=since)
        return kept if self.is_past else kept._lasting_with(packed, base)

    def _lasting_with(self, mark: PackedMark, base: Mark) -> Checkpoints:
        """Let a file hold a checkpoint if it is due and small enough; none among the records of a merged fork."""
        last: Mark | PackedMark = self.lasting.last(self.last_told or base)
        last = last if last.seq > base.seq else base
        if mark.seq - last.seq < self.lasting_distance or mark.block_end > mark.seq:
            return self
        size, weight = self.since
        weight += sum(_weight(values, last.state.get(tag)) for tag, values in mark.state.items())
        if weight > LASTING_SHARE * size:
            return evolve(self, lasting_distance=2 * self.lasting_distance)
        return evolve(self, lasting=self.lasting.append(mark), lasting_distance=GAP, since=(0, 0))

    def _last(self, base: Mark) -> Mark | PackedMark:
        """Return what the next checkpoint is compared with."""
        last: Mark | PackedMark = self.kept.last(self.start or base)
        return last if last.seq > base.seq else base

    def before(self, seq: int) -> Mark | PackedMark | None:
        """Return the newest checkpoint that is not behind record `seq`."""
        near, kept = last_before(self.marks, seq), last_before(self.kept, seq)
        if near is None or (kept is not None and kept.seq > near.seq):
            return kept
        return near

    def behind(self, seq: int) -> Checkpoints:
        """Return those behind record `seq`."""
        marks, kept = (mark for mark in self.marks if mark.seq > seq), (mark for mark in self.kept if mark.seq > seq)
        lasting = (mark for mark in self.lasting if mark.seq > seq)
        return evolve(self, marks=Log(marks), kept=Log(kept), lasting=Log(lasting))

    def with_logs(self, change: Callable[[Table], Table]) -> Checkpoints:
        """Return the same checkpoints with other LOG slices."""
        return evolve(
            self,
            marks=Log(evolve(mark, logs=change(mark.logs)) for mark in self.marks),
            kept=Log(evolve(mark, logs=change(mark.logs)) for mark in self.kept),
            lasting=Log(evolve(mark, logs=change(mark.logs)) for mark in self.lasting),
        )


M = TypeVar("M", Mark, PackedMark)


def last_before(marks: Log[M], seq: int) -> M | None:
    place = bisect_right(marks, seq, key=attrgetter("seq"))
    return marks[place - 1] if place else None


def _size(rows: Iterable[Any]) -> tuple[int, Counted]:
    """Return about how many bytes records take, and the identities of the contents in them."""
    size = 0
    counted = Counted()
    for row in rows:
        size += RECORD_SIZE
        for value in row[3]:
            if type(value) is bytes or type(value) is str:
                size += len(value)
                counted.add(id(value))
            elif type(value) not in (int, NoneType, tuple) and isinstance(value, Packable):
                # The record holds it: packed on its own, the parts that a state shares with it take nothing more.
                value.pack(None, counted)
    return size, counted


def packed_mark(mark: Mark, last: Mark | PackedMark, counted: Counted) -> tuple[PackedMark, int]:
    """Pack a checkpoint, and tell about how many bytes that takes which an earlier one does not."""
    weight = 0
    state: dict[str, Log[Any] | PackedValue] = {}
    for tag, values in mark.state.items():
        value = values.last()
        if len(values) == 1 and isinstance(value, Packable):
            packed, more = value.pack(_packed_before(type(value), last.state.get(tag)), counted)
            state[tag] = PackedValue(type(value), packed)
            weight += more
        else:
            state[tag] = values
            weight += weight_of(values, last.state.get(tag), counted)
    return PackedMark(mark.seq, state, mark.logs, mark.block_end), weight


def _weight(values: Log[Any] | PackedValue, before: Log[Any] | PackedValue | None) -> int:
    """Return about how many bytes the values of a slice take that an earlier checkpoint does not hold."""
    if isinstance(values, PackedValue):
        old = _packed_before(values.cls, before)
        return values.cls.weight(values.packed, values.cls().pack(None, Counted())[0] if old is None else old)
    return 0 if isinstance(before, PackedValue) else weight_of(values, before, Counted())


def _packed_before(type_: type, values: Log[Any] | PackedValue | None) -> Any:
    if isinstance(values, PackedValue):
        return values.packed if values.cls is type_ else None
    value = values.last() if values is not None else None
    return value.pack(None, Counted())[0] if isinstance(value, Packable) and type(value) is type_ else None


def weight_of(one: Any, other: Any, counted: Counted) -> int:
    """Return about how many bytes a value takes that another one does not; what the two share takes nothing."""
    if one is other:
        return 0
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
