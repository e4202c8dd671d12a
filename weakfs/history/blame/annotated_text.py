"""An immutable text whose lines have origins, such as the number of the record that wrote each line.

It consists of blocks of whole lines. A change rebuilds the blocks that it touches and shares the others, so editing a
long file costs as much as editing a short one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import isqrt

from weakfs.class_decorators import frozen
from weakfs.reducers.merging.line_merge import common_count, matches_or_ends, split_lines

# The smallest size in bytes at which a text is divided into blocks: about 100 lines of code.
BLOCK = 4096
# The blocks of a large text are this many times larger than the square root of its size, so that finding a block takes
# as long as changing it.
SPREAD = 8
# The origin of a line that is in none of the compared texts.
NOWHERE = -1

NEWLINE = 10

# Some lines, and the origin of each.
Block = tuple[bytes, "array[int]"]


@frozen(eq=False, repr=False)
class AnnotatedText:
    """A text and the origin of each of its lines. Lines end at `\\n` only."""

    blocks: tuple[Block, ...]
    # The size at which a block is divided.
    block_size: int

    @classmethod
    def of(cls, data: bytes, origins: array[int]) -> AnnotatedText:
        """Return a text with these origins."""
        size = max(BLOCK, isqrt(len(data)) * SPREAD)
        return cls(tuple(_divided(data, origins, size)), size)

    @classmethod
    def put_in(cls, data: bytes, origin: int) -> AnnotatedText:
        """Return a text whose lines all have the same origin."""
        return cls.of(data, array("q", [origin]) * line_count(data))

    @property
    def data(self) -> bytes:
        """The whole text."""
        return b"".join(data for data, _ in self.blocks)

    @property
    def origins(self) -> array[int]:
        """The origin of each line."""
        found = array("q")
        for _, origins in self.blocks:
            found += origins
        return found

    @property
    def size(self) -> int:
        """The length in bytes."""
        return sum(len(data) for data, _ in self.blocks)

    def holds(self, data: bytes) -> bool:
        """Return whether this text equals `data`."""
        return self.size == len(data) and self.data == data

    def spliced(self, pieces: Iterable[tuple[int, int, bytes]], origin: int) -> AnnotatedText:
        """Return the text with ranges of bytes replaced, which are given in order. Lines that change get `origin`.

        Lines that a replacement repeats, as found by the line comparison, keep their origins.
        """
        text = self
        for start, stop, content in reversed([*pieces]):
            text = text._with_piece(start, stop, content, origin)
        return text

    def _with_piece(self, start: int, stop: int, content: bytes, origin: int) -> AnnotatedText:
        blocks = self.blocks
        if not blocks:
            return AnnotatedText.put_in(content, origin)
        ends = [*accumulate([len(data) for data, _ in blocks])]
        first = min(bisect_right(ends, start), len(blocks) - 1)
        last = first
        while ends[last] < stop:
            last += 1
        before = ends[first] - len(blocks[first][0])
        data, origins = _joined(blocks[first : last + 1])
        start, stop = start - before, stop - before
        low = data.rfind(b"\n", 0, start) + 1
        head = data[low:start] + content
        if (not stop or data[stop - 1] == NEWLINE) and (not head or head[-1] == NEWLINE):
            high = stop
        else:
            if stop == len(data) and last + 1 < len(blocks):
                # The first line of the next block is joined to the inserted text.
                last += 1
                data, origins = _joined(blocks[first : last + 1])
            high = data.find(b"\n", stop) + 1 or len(data)
        old = split_lines(data[low:high])
        new = split_lines(head + data[stop:high])
        place = data.count(b"\n", 0, low)
        replaced = _compared(old, new, origins[place : place + len(old)], origin)
        return self._with_blocks(
            first,
            last + 1,
            data[:low] + head + data[stop:],
            origins[:place] + replaced + origins[place + len(old) :],
        )

    def replaced(self, data: bytes, origin: int) -> AnnotatedText:
        """Return the text `data`: lines that this text also has keep their origins, the others get `origin`."""
        blocks = self.blocks
        first = low = 0
        while first < len(blocks) and data.startswith(blocks[first][0], low) and _may_precede(blocks[first], low, data):
            low += len(blocks[first][0])
            first += 1
        if first == len(blocks) and low == len(data):
            return self
        skipped, same = _same_lines(blocks[first][0] if first < len(blocks) else b"", data, low)
        low += skipped
        last, high = len(blocks), len(data)
        while last - 1 > first and data.endswith(end := blocks[last - 1][0], low, high):
            last -= 1
            high -= len(end)
        if last < len(blocks) and high > low and data[high - 1] != NEWLINE:
            high += len(blocks[last][0])
            last += 1
        old, origins = _joined(blocks[first:last])
        middle = _compared(split_lines(old[skipped:]), split_lines(data[low:high]), origins[same:], origin)
        return self._with_blocks(first, last, old[:skipped] + data[low:high], origins[:same] + middle)

    def completed(self, other: AnnotatedText) -> AnnotatedText:
        """Return this text; lines without an origin get the one that they have in `other`, if any."""
        if not self._has_gaps:
            return self
        others = other.replaced(self.data, NOWHERE).origins
        return self._with_origins(_filled(self.origins, others))

    def settled(self, origin: int) -> AnnotatedText:
        """Return this text; lines without an origin get `origin`."""
        if not self._has_gaps:
            return self
        return self._with_origins(array("q", (origin if one == NOWHERE else one for one in self.origins)))

    def traced(self, other: AnnotatedText, since: int) -> AnnotatedText:
        """Return this text; lines whose origin is `since` or later get their origin in `other`, if they have one."""
        own = self.origins
        gaps = self._with_origins(array("q", (NOWHERE if one >= since else one for one in own)))
        return self._with_origins(_filled(gaps.completed(other).origins, own))

    @property
    def _has_gaps(self) -> bool:
        # Ten times as fast as comparing integers; no origin has its highest byte set.
        return any(b"\xff" * 8 in origins.tobytes() for _, origins in self.blocks)

    def _with_origins(self, origins: array[int]) -> AnnotatedText:
        blocks: list[Block] = []
        place = 0
        for data, old in self.blocks:
            blocks.append((data, origins[place : place + len(old)]))
            place += len(old)
        return AnnotatedText(tuple(blocks), self.block_size)

    def _with_blocks(self, first: int, last: int, data: bytes, origins: array[int]) -> AnnotatedText:
        """Return this text with some blocks replaced by others."""
        made = _divided(data, origins, self.block_size) if len(data) > 2 * self.block_size else [(data, origins)]
        return AnnotatedText((*self.blocks[:first], *(made if data else ()), *self.blocks[last:]), self.block_size)


def _filled(origins: array[int], others: array[int]) -> array[int]:
    """Return the origins, with those of `others` in place of missing ones."""
    return array("q", (other if one == NOWHERE else one for one, other in zip(origins, others, strict=True)))


def line_count(data: bytes) -> int:
    """Return the number of lines."""
    return data.count(b"\n") + (not data.endswith(b"\n") and data != b"")


def _divided(data: bytes, origins: array[int], size: int) -> list[Block]:
    found: list[Block] = []
    start = place = 0
    while start < len(data):
        stop = data.find(b"\n", start + size - 1) + 1 or len(data)
        part = data[start:stop]
        count = line_count(part)
        found.append((part, origins[place : place + count]))
        start, place = stop, place + count
    return found


def _joined(blocks: Sequence[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    origins = array("q")
    for _, part in blocks:
        origins += part
    return b"".join(data for data, _ in blocks), origins


def _may_precede(block: Block, start: int, data: bytes) -> bool:
    """Return whether the last line of a block, which `data` contains at `start`, is a whole line there."""
    return block[0][-1] == NEWLINE or start + len(block[0]) == len(data)


def _same_lines(old: bytes, data: bytes, start: int) -> tuple[int, int]:
    """Return the size and the number of the lines at the beginning of `old` that `data` also has at `start`."""
    most = min(len(old), len(data) - start)
    size = common_count(most, lambda at, count: data.startswith(old[at : at + count], start + at))
    if size < len(old) or start + size < len(data):
        size = old.rfind(b"\n", 0, size) + 1
    return size, line_count(old[:size])


def _compared(old: list[bytes], new: list[bytes], origins: array[int], origin: int) -> array[int]:
    """Return the origins of new lines: those of matching old lines, or `origin` if there are none."""
    found = array("q", [origin]) * len(new)
    if old and new:
        for i, j, length in matches_or_ends(old, new):
            found[j : j + length] = origins[i : i + length]
    return found
