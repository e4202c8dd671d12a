"""Keyframes: the past states that a timeline keeps, so that every record is near one of them.

There are temporary and permanent keyframes. Among the newest 2,048 records, there is one every 512, thinned out to one
every 1,024 in their older half: these cost little, whatever the states are like. A keyframe becomes permanent every
4,096 records, so that reading any moment replays no more than that. Permanent keyframes are further apart if the states
differ so much that keyframes would take nearly as much memory as the records. They are packed, so that the garbage
collector does not have to visit them. Packing 10,000 files takes 15 ms, which is spread over the following records: see
`Draft`.

Some permanent keyframes are lasting: a session file stores them, so that reading a loaded history does not replay all
of it. Their states are small compared to the records since the previous one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from itertools import count, islice
from operator import attrgetter
from threading import Lock
from types import MappingProxyType, NoneType
from typing import Any, TypeVar

import attrs
from attrs import evolve
from pyrsistent import PMap

from weakfs.class_decorators import define, frozen
from weakfs.session.slices.log import Log
from weakfs.session.slices.packed_state import Counted, PackedValue, Steps, complete, is_packable
from weakfs.session.slices.table import Table

# The distance in records between recent keyframes.
STRETCH = 512
# How many stretches back other keyframes are kept. With 100,000 files, each older one would hold 2,000 directories for
# the garbage collector to visit.
NEAR = 4
# The distance between permanent keyframes, if their states are small compared to the records.
GAP = 4096
# The memory that permanent keyframes may take, as a fraction of the memory of the records. With 100,000 files in 5,000
# directories, they are 8,192 records apart.
SHARE = 1.0
# The memory that lasting keyframes may take, as a fraction of the memory of the records. In a file, they take up
# about a quarter at most, since a directory is written as its difference from another.
LASTING_SHARE = 0.65
# The memory that a record takes besides the text and bytes in it.
RECORD_SIZE = 250
# Texts up to this length are not counted.
SHORT = 128
# A draft advances once every `PACE` records, by `STEPS` steps of 10 to 20 µs. With 100,000 files, it is complete after
# about 1,400 records.
PACE = 4
STEPS = 32
# A draft that is not complete after this many records is completed immediately, or dropped if another thread has it.
PATIENCE = 3 * STRETCH
# How many records are counted in one step.
ROWS = 16


@define(eq=False)
class Mark:
    """The slices after record `seq`. Records up to `block_end` belong to a merged fork: see `Merged`."""

    seq: int
    state: Table
    logs: Table
    block_end: int


@frozen(eq=False)
class PackedMark:
    """A permanent keyframe."""

    seq: int
    state: Mapping[str, Log[Any] | PackedValue]
    logs: Table
    block_end: int

    def open(self, known: dict[int, Any] | None = None) -> Mark:
        """Return the slices, unpacked; see `Packable.unpack`."""
        state = {
            tag: values.values(known) if isinstance(values, PackedValue) else values
            for tag, values in self.state.items()
        }
        return Mark(self.seq, Table(state), self.logs, self.block_end)


class Draft:
    """A keyframe that is being made permanent, a few steps at a time, so that no single write takes long.

    It depends only on what came before it, so the branches of its timeline share it: whichever adds a record does the
    next steps. It may be dropped at any time, as a later keyframe becomes permanent instead.
    """

    __slots__ = ("_changes", "_lock", "_steps", "seq")

    def __init__(self, seq: int, steps: Steps[Mapping[str, Any]]) -> None:
        self.seq = seq
        self._steps = steps
        self._changes: Mapping[str, Any] | None = None
        self._lock = Lock()

    def advance(self, most: int | None = None) -> Mapping[str, Any] | None:
        """Do the next steps, all of them by default; return the changes to `Keyframes` once none remain."""
        # Steps may be in progress, in another thread or in the code that a signal handler interrupted.
        if self._lock.acquire(blocking=False):
            try:
                if self._changes is None:
                    for _ in range(most) if most is not None else count():
                        next(self._steps)
            except StopIteration as stop:
                # Steps that were interrupted have no result.
                self._changes = stop.value or {}
            finally:
                self._lock.release()
        return self._changes


@define(eq=False)
class Keyframes:
    """The keyframes of one timeline, oldest first. Never changed; a frozen class would take three times as long."""

    marks: Log[Mark] = attrs.field(factory=lambda: Log[Mark]())
    # The permanent keyframes.
    kept: Log[PackedMark] = attrs.field(factory=lambda: Log[PackedMark]())
    # The number of the record at which they were last thinned out.
    thinned: int = 0
    # The smallest distance in records between the last permanent keyframe and the next.
    distance: int = GAP
    # The keyframe that the first one is compared with; `None` for the state before the first record.
    start: Mark | PackedMark | None = None
    # The lasting keyframes, and the smallest distance in records from the last of them to the next.
    lasting: Log[PackedMark] = attrs.field(factory=lambda: Log[PackedMark]())
    lasting_distance: int = GAP
    # Since the newest lasting keyframe: the size of the records in bytes, and the size of the blobs that no record
    # holds.
    since: tuple[int, int] = (0, 0)
    # The newest lasting keyframe that was read rather than made, if there is one.
    last_loaded: PackedMark | None = None
    # Whether these keyframes belong to a loaded history, whose lasting keyframes are in the file.
    is_past: bool = False
    # The keyframe that is becoming permanent.
    draft: Draft | None = None
    # The number of the record at which the next thing is to be done: thinning, or steps of the draft.
    wakes_at: int = STRETCH

    def with_mark(self, mark: Mark) -> Keyframes:
        """Add a keyframe that is kept until the next thinning."""
        return Keyframes(
            self.marks.append(mark),
            self.kept,
            self.thinned,
            self.distance,
            self.start,
            self.lasting,
            self.lasting_distance,
            self.since,
            self.last_loaded,
            self.is_past,
            self.draft,
            self.wakes_at,
        )

    def thinned_with(self, mark: Mark, rows: Log[Any], base: Mark) -> Keyframes:
        """Add a keyframe and thin out the others. `rows` are the records after `base`."""
        made = self
        if made.draft is not None and mark.seq - made.draft.seq >= PATIENCE:
            # Perhaps nobody can complete the draft: the thread that was doing its steps may be gone.
            made = made._with_changes(made.draft.advance() or {})
        draft = made.draft
        if draft is None and mark.seq >= made.due(base):
            draft = Draft(mark.seq, made._changes(mark, rows, base))
        now = mark.seq // STRETCH
        drafted = None if draft is None else draft.seq
        remaining: list[Mark] = []
        before = -1
        for old in self.marks:
            stretch = old.seq // STRETCH
            is_near = stretch != before and now - stretch <= min(NEAR, 2 * (stretch & -stretch))
            if old.seq == drafted or is_near:
                remaining.append(old)
            before = stretch
        wakes_at = mark.seq + (STRETCH if draft is None else PACE)
        return evolve(made, marks=Log((*remaining, mark)), thinned=mark.seq, draft=draft, wakes_at=wakes_at)

    def continued(self, seq: int) -> Keyframes:
        """Do the next steps of the draft, at record `seq`."""
        made = self if self.draft is None else self._with_changes(self.draft.advance(STEPS))
        return evolve(made, wakes_at=self.thinned + STRETCH if made.draft is None else seq + PACE)

    def _with_changes(self, changes: Mapping[str, Any] | None) -> Keyframes:
        """Return the keyframes with the draft made permanent, or the same if it is not complete."""
        return self if changes is None else evolve(self, draft=None, **changes)

    def due(self, base: Mark) -> int:
        """Return the number of the first record whose keyframe may become permanent."""
        return self._last(base).seq + self.distance

    def kept_with(self, mark: Mark, rows: Log[Any], base: Mark) -> Keyframes:
        """Make a keyframe permanent if it is due and small compared to the records since the last one."""
        if mark.seq < self.due(base):
            return self
        return self._with_changes(complete(self._changes(mark, rows, base)))

    def _changes(self, mark: Mark, rows: Log[Any], base: Mark) -> Steps[Mapping[str, Any]]:
        """Return the fields that change with a keyframe that is due: permanent ones, or the distance of the next."""
        last = self._last(base)
        size, counted = yield from _size(islice(rows.since(last.seq - base.seq), mark.seq - last.seq))
        packed, weight = yield from packed_mark(mark, last, counted)
        if weight > SHARE * size:
            return {"distance": self.distance + GAP}
        since = (self.since[0] + size, self.since[1] + counted.others)
        changes = {"kept": self.kept.append(packed), "since": since}
        if self.is_past:
            return changes
        return {**changes, "distance": GAP, **(yield from self._lasting_changes(packed, base, since))}

    def _lasting_changes(self, mark: PackedMark, base: Mark, since: tuple[int, int]) -> Steps[Mapping[str, Any]]:
        """Make a keyframe lasting if it is due and small enough, unless it is among the records of a merged fork."""
        last: Mark | PackedMark = self.lasting.last(self.last_loaded or base)
        last = last if last.seq > base.seq else base
        if mark.seq - last.seq < self.lasting_distance or mark.block_end > mark.seq:
            return {}
        size, weight = since
        for tag, values in mark.state.items():
            weight += yield from _weight(values, last.state.get(tag))
        if weight > LASTING_SHARE * size:
            return {"lasting_distance": self.lasting_distance + GAP}
        return {"lasting": self.lasting.append(mark), "lasting_distance": GAP, "since": (0, 0)}

    def _last(self, base: Mark) -> Mark | PackedMark:
        """Return the keyframe that the next one is compared with."""
        last: Mark | PackedMark = self.kept.last(self.start or base)
        return last if last.seq > base.seq else base

    def before(self, seq: int) -> Mark | PackedMark | None:
        """Return the newest keyframe at or before record `seq`."""
        near, kept = last_before(self.marks, seq), last_before(self.kept, seq)
        if near is None or (kept is not None and kept.seq > near.seq):
            return kept
        return near

    def behind(self, seq: int) -> Keyframes:
        """Return the keyframes after record `seq`."""
        marks, kept = (mark for mark in self.marks if mark.seq > seq), (mark for mark in self.kept if mark.seq > seq)
        lasting = (mark for mark in self.lasting if mark.seq > seq)
        return evolve(self, marks=Log(marks), kept=Log(kept), lasting=Log(lasting), draft=None)

    def with_logs(self, change: Callable[[Table], Table]) -> Keyframes:
        """Return the same keyframes with other LOG slices."""
        return evolve(
            self,
            marks=Log(evolve(mark, logs=change(mark.logs)) for mark in self.marks),
            kept=Log(evolve(mark, logs=change(mark.logs)) for mark in self.kept),
            lasting=Log(evolve(mark, logs=change(mark.logs)) for mark in self.lasting),
            draft=None,
        )


M = TypeVar("M", Mark, PackedMark)


def last_before(marks: Log[M], seq: int) -> M | None:
    place = bisect_right(marks, seq, key=attrgetter("seq"))
    return marks[place - 1] if place else None


def _size(rows: Iterable[Any]) -> Steps[tuple[int, Counted]]:
    """Return the approximate size of records in bytes, and the identities of the blobs in them."""
    size = 0
    counted = Counted()
    for number, row in enumerate(rows):
        if not number % ROWS:
            yield
        size += RECORD_SIZE
        for value in row[3]:
            if type(value) is str and len(value) <= SHORT:
                size += len(value)
            elif type(value) is bytes or type(value) is str:
                size += len(value)
                counted.add(id(value))
            elif type(value) not in (int, NoneType, tuple) and is_packable(value):
                # The record holds it, so a packed state that shares it takes no more memory.
                yield from value.pack(None, counted)
    return size, counted


def packed_mark(mark: Mark, last: Mark | PackedMark, counted: Counted | None) -> Steps[tuple[PackedMark, int]]:
    """Pack a keyframe; return it with the approximate number of bytes that it does not share with an earlier one.

    Without `counted`, sizes are not computed.
    """
    weight = 0
    state: dict[str, Log[Any] | PackedValue] = {}
    for tag, values in mark.state.items():
        value = values.last()
        if len(values) == 1 and is_packable(value):
            before = yield from _packed_before(type(value), last.state.get(tag))
            packed, more = yield from value.pack(before, counted)
            state[tag] = PackedValue(type(value), packed)
            weight += more
        else:
            state[tag] = values
            weight += 0 if counted is None else weight_of(values, last.state.get(tag), counted)
    return PackedMark(mark.seq, state, mark.logs, mark.block_end), weight


def _weight(values: Log[Any] | PackedValue, before: Log[Any] | PackedValue | None) -> Steps[int]:
    """Return the approximate number of bytes in a slice's values that an earlier keyframe does not hold."""
    if isinstance(values, PackedValue):
        old = yield from _packed_before(values.cls, before)
        if old is None:
            old, _ = yield from values.cls().pack(None, None)
        return (yield from values.cls.weight(values.packed, old))
    return 0 if isinstance(before, PackedValue) else weight_of(values, before, Counted())


def _packed_before(type_: type, values: Log[Any] | PackedValue | None) -> Steps[Any]:
    if isinstance(values, PackedValue):
        return values.packed if values.cls is type_ else None
    value = values.last() if values is not None else None
    if not is_packable(value) or type(value) is not type_:
        return None
    packed, _ = yield from value.pack(None, None)
    return packed


def weight_of(one: Any, other: Any, counted: Counted) -> int:
    """Return the approximate number of bytes in a value that it does not share with another one."""
    if one is other:
        return 0
    if isinstance(one, dict | PMap | MappingProxyType):
        old: Mapping[Any, Any] = other if isinstance(other, dict | PMap | MappingProxyType) else {}
        return sum(weight_of(value, old.get(key), counted) for key, value in one.items())
    if isinstance(one, Log):
        # A growing value shares its items; what it gained is in the records.
        return weight_of(one.last(), other.last() if isinstance(other, Log) else None, counted)
    if isinstance(one, tuple):
        items = other if isinstance(other, tuple) else ()
        return sum(
            weight_of(value, items[place] if place < len(items) else None, counted) for place, value in enumerate(one)
        )
    if attrs.has(type(one)):
        names = [field.name for field in attrs.fields(type(one))]
        return sum(weight_of(getattr(one, name), getattr(other, name, None), counted) for name in names)
    return 0 if id(one) in counted or not isinstance(one, bytes | str) else len(one)
