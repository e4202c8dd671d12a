"""A log: an append-only sequence, every prefix of which is an immutable value.

It keeps the session's records, and the values of a slice that only grows. A `Log` is a stretch of items and a length;
each stretch is chained to the one before it. A longer log appends to the same stretch, so that a thousand versions
share their items. If the position after a log's last item is already taken, appending starts a new stretch. An old
stretch may be packed (`weakfs.session.history.packed_rows`), which changes no version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar, overload

from weakfs.messages import plural

T = TypeVar("T")


# How many items a stretch holds.
STRETCH = 512
# A shorter stretch is copied rather than chained, so that forks that append in turn do not build a long chain.
SEGMENT = 256


class Packed(Protocol[T]):
    """The items of a stretch in a form that takes less memory."""

    def __len__(self) -> int: ...
    def load(self) -> list[T]:
        """Return the items, equal to those that were packed."""
        ...


class Deferred(Generic[T]):
    """A stretch of items that are made, all together, when one of them is read."""

    __slots__ = ("_known",)

    def __init__(self, rows: list[Any], make: Callable[[list[Any]], list[T]]) -> None:
        # The rows and how to make the items, or the items and `None`: one value, because threads read at the same time.
        self._known: tuple[list[Any], Callable[[list[Any]], list[T]] | None] = rows, make

    def __len__(self) -> int:
        return len(self._known[0])

    def load(self) -> list[T]:
        """Return the items."""
        items, make = self._known
        if make is not None:
            items = make(items)
            self._known = items, None
        return items


class Stretch(Generic[T]):
    """Consecutive items of a log, with a reference to the stretch before them.

    `start` is the position of the first item in the log. No item is appended once the stretch holds `limit` of them.
    """

    __slots__ = ("base", "depth", "items", "jump", "limit", "start")

    def __init__(self, base: Stretch[T] | None, start: int, items: list[T]) -> None:
        self.items: list[T] | Packed[T] = items
        self.base = base
        self.start = start
        self.limit = STRETCH
        # A stretch further back, so that any stretch is found in O(log n): Myers, "An applicative random-access stack"
        # (1983).
        self.jump: Stretch[T] | None = base
        self.depth = 0
        if base is not None:
            self.depth = base.depth + 1
            near = base.jump
            far = None if near is None else near.jump or near
            if near is not None and far is not None and base.depth - near.depth == near.depth - far.depth:
                self.jump = far

    def read(self) -> list[T]:
        """Return the items; callers must not change the list."""
        items = self.items
        return items if isinstance(items, list) else items.load()

    @property
    def is_packed(self) -> bool:
        """Whether the items were packed."""
        return not isinstance(self.items, list)

    def close(self) -> list[T]:
        """Prevent further appends and return a copy of the items."""
        # The limit first: a thread that is appending at the same time checks it afterwards.
        self.limit = 0
        return [*self.read()]

    def at(self, position: int) -> Stretch[T]:
        """Return the stretch with the item at a position: this one or one before it."""
        stretch = self
        while position < stretch.start and stretch.base is not None:
            jump = stretch.jump
            stretch = jump if jump is not None and jump.start > position else stretch.base
        return stretch


# Nothing is ever appended to an empty list: see `Log.append`.
NOTHING: Stretch[Any] = Stretch(None, 0, [])


class Log(Sequence[T], Generic[T]):
    """A persistent sequence: `append` returns a new one in O(1) and leaves this one unchanged."""

    __slots__ = ("_length", "_stretch")

    # The stretch with the last item.
    _stretch: Stretch[T]
    _length: int

    def __init__(self, items: Iterable[T] = ()) -> None:
        every = list(items)
        stretch: Stretch[T] = Stretch(None, 0, every[:STRETCH]) if every else NOTHING
        for start in range(STRETCH, len(every), STRETCH):
            stretch = Stretch(stretch, start, every[start : start + STRETCH])
        self._stretch = stretch
        self._length = len(every)

    @staticmethod
    def _make(stretch: Stretch[T], length: int) -> Log[T]:
        log: Log[T] = Log.__new__(Log)
        log._stretch = stretch
        log._length = length
        return log

    @classmethod
    def _of_stretches(cls, stretches: Iterable[list[T] | Packed[T]]) -> Log[T]:
        """Make a log of existing stretches; empty ones are left out. The log takes over the lists."""
        return cls()._with_stretches(stretches)

    def _with_stretches(self, stretches: Iterable[list[T] | Packed[T]]) -> Log[T]:
        """Return this sequence with the items of existing stretches, which it takes over, at its end."""
        stretch = self._stretch if self._length else None
        length = self._length
        for items in stretches:
            if len(items):
                stretch = Stretch(stretch, length, [])
                stretch.items = items
                length += len(items)
        return self if stretch is None else self._make(stretch, length)

    def append(self, item: T) -> Log[T]:
        """Return this sequence with `item` at its end."""
        stretch, length = self._stretch, self._length
        items, used = stretch.items, length - stretch.start
        if isinstance(items, list):
            # All empty logs share one list, to which nothing must be added.
            if len(items) == used and 0 < used < stretch.limit:
                items.append(item)
                # Two threads may both have found the position free: the one that got it continues, the other branches.
                # Or the stretch was closed in the meantime.
                if items[used] is item and used < stretch.limit:
                    return self._make(stretch, length + 1)
            if used < SEGMENT and not (used and used >= stretch.limit):
                return self._make(Stretch(stretch.base, stretch.start, [*items[:used], item]), length + 1)
        return self._make(Stretch(stretch, length, [item]), length + 1)

    def extend(self, more: Iterable[T]) -> Log[T]:
        """Return this sequence with all items of `more` at its end."""
        log = self
        for item in more:
            log = log.append(item)
        return log

    def replace_last(self, item: T) -> Log[T]:
        """Return this sequence with `item` in place of its last item, or with `item` alone if it is empty."""
        if self._length <= 1:
            return Log._make(Stretch(None, 0, [item]), 1)
        return self.prefix(self._length - 1).append(item)

    def prefix(self, length: int) -> Log[T]:
        """Return the first `length` items, shared with this sequence."""
        return self._make(self._stretch.at(length - 1), length) if length else Log()

    def without_first(self, count: int) -> Log[T]:
        """Return the items after the first `count`; packed stretches are shared."""
        parts: list[list[T] | Packed[T]] = []
        for stretch, end in self._stretches():
            if end <= count:
                break
            low, high = max(count - stretch.start, 0), end - stretch.start
            whole = not low and high == len(stretch.items)
            parts.append(stretch.items if whole and stretch.is_packed else stretch.read()[low:high])
        return Log._of_stretches(reversed(parts))

    def extends(self, other: Log[T]) -> bool:
        """Return whether this sequence begins with the identical items of `other`; O(log n) when they share them.

        Packed items are rebuilt each time they are read, so only a sequence that shares their stretch can hold the
        identical items. They are not read.
        """
        if other._length > self._length:
            return False
        for stretch, end in other._stretches() if other._length else ():
            start = stretch.start
            own = self._stretch.at(end - 1)
            if own is stretch:
                return True
            if stretch.is_packed or own.is_packed:
                return False
            items = zip(islice(self.since(start), end - start), stretch.read(), strict=False)
            if not all(mine is theirs for mine, theirs in items):
                return False
        return True

    def begins_like(self, other: Log[T]) -> bool:
        """Return whether this sequence begins with items that are equal to those of `other`.

        An item that was computed again from its record is a different object, but a merge must treat it as the same.
        """
        return self.extends(other) or (
            self._length >= other._length
            and all(
                mine is theirs or (type(mine) is type(theirs) and mine == theirs)
                for mine, theirs in zip(self, other, strict=False)
            )
        )

    def equals(self, other: Log[T]) -> bool:
        """Return whether both sequences have equal items."""
        return self is other or (self._length == other._length and self.begins_like(other))

    def last(self, default: Any = None) -> Any:
        """Return the last item, or `default` if there is none."""
        stretch, length = self._stretch, self._length
        if not length:
            return default
        items = stretch.items
        return (items if isinstance(items, list) else items.load())[length - stretch.start - 1]

    def _stretches(self) -> Iterator[tuple[Stretch[T], int]]:
        """Yield the stretches of this sequence, newest first, each with the position where its part ends."""
        stretch: Stretch[T] | None = self._stretch
        end = self._length
        while stretch is not None:
            yield stretch, end
            end, stretch = stretch.start, stretch.base

    @property
    def stretch_count(self) -> int:
        """The number of stretches that hold the items."""
        return self._stretch.depth + 1

    def start_stretch(self, least: int) -> None:
        """Make the next item start a new stretch, if the current one holds at least `least` items."""
        stretch = self._stretch
        if self._length - stretch.start >= least:
            stretch.limit = min(stretch.limit, self._length - stretch.start)

    def after(self, length: int) -> Sequence[T]:
        """Return the items after the first `length`, as a list; O(log n), however many come before."""
        stretch = self._stretch
        items, start = stretch.items, stretch.start
        if start <= length and isinstance(items, list):
            return items[length - start : self._length - start]
        return list(self._since(length))

    def since(self, length: int) -> Iterator[T]:
        """Return an iterator over the items after the first `length`; O(log n), however many come before."""
        stretch = self._stretch
        items = stretch.items
        if stretch.start <= length and isinstance(items, list):
            # Usually only a few of the newest items are wanted, which needs no generator.
            return iter(items[length - stretch.start : self._length - stretch.start])
        return self._since(length)

    def _since(self, length: int) -> Iterator[T]:
        parts: list[tuple[Stretch[T], int]] = []
        for part in self._stretches():
            parts.append(part)
            if part[0].start <= length:
                break
        while parts:
            stretch, end = parts.pop()
            low, high = max(length - stretch.start, 0), end - stretch.start
            items = stretch.read()
            yield from items if low == 0 and high == len(items) and stretch.is_packed else items[low:high]

    def _parts_since(self, length: int, edge: int) -> Iterator[tuple[Stretch[T], int, int]]:
        """Yield the stretches with items after the first `length`, oldest first, with the positions of their parts.

        A stretch with items on both sides of the position `edge` is two parts.
        """
        parts: list[tuple[Stretch[T], int, int]] = []
        for stretch, end in self._stretches():
            start = max(stretch.start, length)
            if start < edge < end:
                parts += [(stretch, edge, end), (stretch, start, edge)]
            elif start < end:
                parts.append((stretch, start, end))
            if stretch.start <= length:
                break
        yield from reversed(parts)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return self.since(0)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return tuple(self)[index]
        position = index + self._length if index < 0 else index
        if not 0 <= position < self._length:
            raise IndexError(f"there is no item {index} in a log of {self._length} items")
        stretch = self._stretch.at(position)
        return stretch.read()[position - stretch.start]

    def __repr__(self) -> str:
        return f"<Log of {plural(self._length, 'item')}>"
