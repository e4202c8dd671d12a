"""An append-only sequence whose every length is a value of its own.

The session's records and the values of a slice that only grows are kept in one. A `Log` is a list and a
length: a longer one appends to the same list, so that a thousand versions share their items. Whoever asks
to append when the place behind its last item is taken starts a segment of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")

# A shorter segment is copied rather than chained, so that forks that append in turn do not build a long chain.
SEGMENT = 256


class Log(Sequence[T], Generic[T]):
    """A persistent sequence: `append` gives a new one in O(1) and leaves this one as it was."""

    __slots__ = ("_base", "_items", "_length", "_start")

    _base: Log[T] | None
    _items: list[T]
    _length: int
    _start: int

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._base = None
        self._start = 0
        self._items = list(items)
        self._length = len(self._items)

    @staticmethod
    def _make(base: Log[T] | None, start: int, items: list[T], length: int) -> Log[T]:
        log: Log[T] = Log.__new__(Log)
        log._base = base
        log._start = start
        log._items = items
        log._length = length
        return log

    def append(self, item: T) -> Log[T]:
        """Give this sequence with `item` behind it."""
        items, used = self._items, self._length - self._start
        # The list of an empty log is nobody's: many share it, and none of them is to hold another's items.
        if used and len(items) == used:
            items.append(item)
            # Two threads may both have found the place free: the one that got it goes on, the other branches.
            if items[used] is item:
                return self._make(self._base, self._start, items, self._length + 1)
        if used < SEGMENT:
            return self._make(self._base, self._start, [*items[:used], item], self._length + 1)
        return self._make(self, self._length, [item], self._length + 1)

    def extend(self, more: Iterable[T]) -> Log[T]:
        """Give this sequence with all of `more` behind it."""
        log = self
        for item in more:
            log = log.append(item)
        return log

    def replace_last(self, item: T) -> Log[T]:
        """Give this sequence with `item` in the place of its last one; an empty one gains it."""
        if self._length <= 1:
            return self._make(None, 0, [item], 1)
        return self.prefix(self._length - 1).append(item)

    def prefix(self, length: int) -> Log[T]:
        """Give the first `length` items; shares them."""
        log = self
        while length <= log._start and log._base is not None:
            log = log._base
        return self._make(log._base, log._start, log._items, length)

    def extends(self, other: Log[T]) -> bool:
        """Tell whether this sequence begins with the very items of `other`; O(1) when they share them."""
        if other._length > self._length:
            return False
        log: Log[T] | None = self
        while log is not None and log._start > other._start:
            log = log._base
        # A base counts only as far as it goes: what lies behind may have branched off inside the segment.
        if log is not None and log._items is other._items and log._length >= other._length:
            return True
        return all(mine is theirs for mine, theirs in zip(self, other, strict=False))

    def last(self, default: Any = None) -> Any:
        """Give the last item, or `default` where there is none."""
        length = self._length
        return self._items[length - self._start - 1] if length else default

    def since(self, length: int) -> Iterator[T]:
        """Go through the items behind the first `length`; O(1) to start, whatever lies before."""
        segments: list[Log[T]] = []
        log: Log[T] | None = self
        while log is not None:
            segments.append(log)
            if log._start <= length:
                break
            log = log._base
        end = self._length
        bounds: list[tuple[list[T], int, int]] = []
        for segment in segments:
            bounds.append((segment._items, max(length - segment._start, 0), end - segment._start))
            end = segment._start
        for items, low, high in reversed(bounds):
            yield from items[low:high]

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
            raise IndexError(f"cannot take item {index} of a log of {self._length} items")
        log = self
        while position < log._start and log._base is not None:
            log = log._base
        return log._items[position - log._start]

    def __repr__(self) -> str:
        return f"Log({list(self)!r})"
