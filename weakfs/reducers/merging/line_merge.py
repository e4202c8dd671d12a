"""Comparing and merging texts by lines, in linear space and with a bound on the work.

The comparison is E. Myers, "An O(ND) Difference Algorithm and Its Variations" (1986), section 4b: find the
middle of a shortest edit path from both ends at once, then the two halves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from io import BytesIO

from weakfs.class_decorators import frozen

# The maximum number of steps that the comparison may take, besides reading the texts: about half a second.
WORK = 2_000_000
# How many items are compared at a time, or at first, while looking for a common start and end.
CHUNK = 64


class TooMuchWork(Exception):
    """Raised if two texts are too long and too different to compare within the bound."""


# A run of equal items: (start in a, start in b, length).
Match = tuple[int, int, int]
# A range of base lines with its replacement: (start, stop, lines).
Change = tuple[int, int, tuple[bytes, ...]]


def split_lines(data: bytes) -> list[bytes]:
    """Split after each `\\n`."""
    return BytesIO(data).readlines()


def without_common_ends(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Return two texts without the whole lines that they have in common at the start and at the end."""
    start, end = common_ends(old, new)
    start = old.rfind(b"\n", 0, start) + 1
    # The first line of the common end may be the end of a longer line.
    line_end = old.find(b"\n", len(old) - end) + 1
    same = len(old) - line_end if end and line_end else 0
    return old[start : len(old) - same], new[start : len(new) - same]


def common_ends(a: Sequence[object], b: Sequence[object]) -> tuple[int, int]:
    """Return how many items two texts or lists have in common at the start, and at the end of the rest."""
    least = min(len(a), len(b))
    start = common_count(least, lambda at, count: a[at : at + count] == b[at : at + count])
    a_end, b_end = len(a), len(b)
    end = common_count(
        least - start,
        lambda at, count: a[a_end - at - count : a_end - at] == b[b_end - at - count : b_end - at],
    )
    return start, end


def common_count(most: int, is_same: Callable[[int, int], bool]) -> int:
    """Return how many items are the same, at most `most`. `is_same(at, count)` compares the `count` items from `at`."""
    at, step = 0, CHUNK
    while step := min(step, most - at):
        if is_same(at, step):
            at += step
            step *= 2
        else:
            step //= 2
    return at


def matches(a: Sequence[bytes], b: Sequence[bytes], *, work: int = WORK) -> list[Match]:
    """Return the runs of a longest common subsequence, in order. Raises `TooMuchWork` beyond the bound."""
    low, high = _common_ends(a, b)
    middle = _pairs(a, b, low, len(a) - high, len(b) - high, work)
    return _joined([(0, 0, low), *((i, j, 1) for i, j in middle), (len(a) - high, len(b) - high, high)])


def matches_or_ends(a: Sequence[bytes], b: Sequence[bytes], *, work: int = WORK) -> list[Match]:
    """Return what `matches` returns or, beyond the bound, only the common items at the beginning and the end."""
    if len(a) == len(b) == 1:
        return [(0, 0, 1)] if a[0] == b[0] else []
    try:
        return matches(a, b, work=work)
    except TooMuchWork:
        low, high = _common_ends(a, b)
        return [(0, 0, low), (len(a) - high, len(b) - high, high)]


def _common_ends(a: Sequence[bytes], b: Sequence[bytes]) -> tuple[int, int]:
    """Return what `common_ends` does, for lists of lines: five times as fast if they are short."""
    least = min(len(a), len(b))
    low = high = 0
    # Slices are compared five times as fast as items.
    while low + CHUNK <= least and a[low : low + CHUNK] == b[low : low + CHUNK]:
        low += CHUNK
    while low < least and a[low] == b[low]:
        low += 1
    most = least - low
    while high + CHUNK <= most and a[len(a) - high - CHUNK : len(a) - high] == b[len(b) - high - CHUNK : len(b) - high]:
        high += CHUNK
    while high < most and a[-1 - high] == b[-1 - high]:
        high += 1
    return low, high


def _pairs(
    a: Sequence[bytes], b: Sequence[bytes], low: int, a_end: int, b_end: int, work: int
) -> list[tuple[int, int]]:
    """Match the parts between a common start and end, without the lines that only one side has: they cannot match."""
    in_a, in_b = set(a[low:a_end]), set(b[low:b_end])
    rows = [i for i in range(low, a_end) if a[i] in in_b]
    columns = [j for j in range(low, b_end) if b[j] in in_a]
    numbers = {line: number for number, line in enumerate(in_a & in_b)}
    found = _Comparison([numbers[a[i]] for i in rows], [numbers[b[j]] for j in columns], work).run()
    return [(rows[i], columns[j]) for i, j in found]


def _joined(runs: Iterable[Match]) -> list[Match]:
    """Join runs that follow one another on both sides, and drop empty ones."""
    joined: list[Match] = []
    for i, j, length in runs:
        if joined:
            x, y, before = joined[-1]
            if x + before == i and y + before == j:
                joined[-1] = (x, y, before + length)
                continue
        if length:
            joined.append((i, j, length))
    return joined


class _Comparison:
    def __init__(self, a: list[int], b: list[int], work: int) -> None:
        self.a, self.b = a, b
        # Following equal lines takes steps too, but the bound must not stop long texts with few changes.
        self.work = work + 4 * (len(a) + len(b))

    def run(self) -> list[tuple[int, int]]:
        a, b = self.a, self.b
        pairs: list[tuple[int, int]] = []
        stack = [(0, len(a), 0, len(b))]
        while stack:
            a_low, a_high, b_low, b_high = stack.pop()
            while a_low < a_high and b_low < b_high and a[a_low] == b[b_low]:
                pairs.append((a_low, b_low))
                a_low += 1
                b_low += 1
            while a_low < a_high and b_low < b_high and a[a_high - 1] == b[b_high - 1]:
                a_high -= 1
                b_high -= 1
                pairs.append((a_high, b_high))
            if a_low < a_high and b_low < b_high:
                x, y = self._middle(a_low, a_high, b_low, b_high)
                stack += [(x, a_high, y, b_high), (a_low, x, b_low, y)]
        return sorted(pairs)

    def _middle(self, a_low: int, a_high: int, b_low: int, b_high: int) -> tuple[int, int]:
        """Return a point on a shortest edit path that is neither its start nor its end.

        The two ranges differ at both ends, so that every path has two edits or more and such a point exists.
        """
        a, b = self.a, self.b
        n, m = a_high - a_low, b_high - b_low
        delta = n - m
        forward, backward = {1: 0}, {1: 0}
        for d in range((n + m + 1) // 2 + 1):
            # Diagonals that leave the rectangle are not followed.
            diagonals = range(-(d - 2 * max(0, d - m)), d - 2 * max(0, d - n) + 1, 2)
            self.work -= 2 * len(diagonals)
            if self.work < 0:
                raise TooMuchWork
            for k in diagonals:
                x = _furthest(forward, k, d)
                y = x - k
                while x < n and y < m and a[a_low + x] == b[b_low + y]:
                    x += 1
                    y += 1
                self.work -= x - forward.get(k, 0)
                forward[k] = x
                if delta % 2 and -d < delta - k < d and x + backward.get(delta - k, -n - 1) >= n:
                    return a_low + x, b_low + y
            for k in diagonals:
                x = _furthest(backward, k, d)
                y = x - k
                while x < n and y < m and a[a_high - 1 - x] == b[b_high - 1 - y]:
                    x += 1
                    y += 1
                self.work -= x - backward.get(k, 0)
                backward[k] = x
                if not delta % 2 and -d <= delta - k <= d and x + forward.get(delta - k, -n - 1) >= n:
                    return a_high - x, b_high - y
        raise AssertionError("two edit paths always meet")


def _furthest(reached: dict[int, int], k: int, d: int) -> int:
    """Return how far the path with one more edit gets on diagonal `k` before it follows equal items."""
    if k == -d or (k != d and reached.get(k - 1, -1) < reached.get(k + 1, -1)):
        return reached[k + 1]
    return reached[k - 1] + 1


@frozen
class Hunk:
    """Lines that two changes of one text replaced differently: `start` is the index of the first base line."""

    start: int
    base: tuple[bytes, ...]
    ours: tuple[bytes, ...]
    theirs: tuple[bytes, ...]


# A merged text: lines that both sides agree on, and hunks on which they do not.
Part = tuple[bytes, ...] | Hunk


def merge_parts(base: bytes, ours: bytes, theirs: bytes, *, work: int = WORK) -> list[Part]:
    """Merge two changes of one text, and return the parts of the result.

    Ranges of base lines conflict if they overlap or insert at the same point, unless both sides made the same
    change; adjacent ranges merge. Raises `TooMuchWork` if the texts cannot be compared within the bound.
    """
    lines = split_lines(base)
    mine, other = _changes(lines, split_lines(ours), work), _changes(lines, split_lines(theirs), work)
    parts = _parts(lines, mine, other, joins_end=False)
    # A base line without a final newline would run into what the other side added after it.
    agreed = [line for part in parts for line in ((part.base or ()) if isinstance(part, Hunk) else part)]
    if any(not line.endswith(b"\n") for line in agreed[:-1]):
        parts = _parts(lines, mine, other, joins_end=True)
    return parts


def _parts(lines: list[bytes], mine: list[Change], other: list[Change], *, joins_end: bool) -> list[Part]:
    """Return the parts of a merge; with `joins_end` all changes at the last line are in one hunk."""
    parts: list[Part] = []
    end = 0
    for group in _groups(sorted({*mine, *other}), len(lines) - 1 if joins_end else None):
        start, stop = group[0][0], max(change[1] for change in group)
        parts.append(tuple(lines[end:start]))
        end = stop
        if len(group) == 1:
            parts.append(group[0][2])
        else:
            sides = [_replaced(lines, start, stop, [c for c in group if c in changes]) for changes in (mine, other)]
            parts += _trimmed(start, tuple(lines[start:stop]), *sides)
    parts.append(tuple(lines[end:]))
    return [part for part in parts if isinstance(part, Hunk) or part]


def _groups(changes: list[Change], last: int | None) -> list[list[Change]]:
    """Group the changes that collide, directly or through another; with `last`, also group those from that line on."""
    groups: list[list[Change]] = []
    reach = (0, 0)
    for change in changes:
        joined = last is not None and change[1] >= last and reach[1] >= last
        if groups and (joined or _collide(reach, change[:2])):
            groups[-1].append(change)
            reach = (min(reach[0], change[0]), max(reach[1], change[1]))
        else:
            groups.append([change])
            reach = change[:2]
    return groups


def _replaced(lines: list[bytes], start: int, stop: int, changes: list[Change]) -> tuple[bytes, ...]:
    """Return the lines from `start` to `stop` as one side has them."""
    found: list[bytes] = []
    for low, high, replacement in changes:
        found += (*lines[start:low], *replacement)
        start = high
    return (*found, *lines[start:stop])


def _trimmed(start: int, base: tuple[bytes, ...], ours: tuple[bytes, ...], theirs: tuple[bytes, ...]) -> list[Part]:
    """Return a hunk without the lines at its start and end that both sides have."""
    head = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))
    if len(ours) == len(theirs) == head:
        return [ours]
    left = min(len(ours), len(theirs)) - head
    tail = next((i for i in range(left) if ours[-1 - i] != theirs[-1 - i]), left)
    middle = Hunk(start, base, ours[head : len(ours) - tail], theirs[head : len(theirs) - tail])
    return [ours[:head], middle, ours[len(ours) - tail :]]


def one_hunk(base: bytes, ours: bytes, theirs: bytes) -> list[Part]:
    """Return the parts of texts that take too much work to compare: the common lines at the ends, and one hunk."""
    parts = _trimmed(0, *(tuple(split_lines(text)) for text in (base, ours, theirs)))
    return [part for part in parts if isinstance(part, Hunk) or part]


def resolved(parts: list[Part], side: str) -> bytes:
    """Return a merged text with one side's lines in each hunk, `"ours"` or `"theirs"`, or both between `"markers"`."""
    if side == "markers":
        return b"".join(_marked(part) if isinstance(part, Hunk) else b"".join(part) for part in parts)
    chosen = [getattr(part, side) if isinstance(part, Hunk) else part for part in parts]
    return b"".join(line for part in chosen for line in part)


def _marked(hunk: Hunk) -> bytes:
    """Return a hunk between conflict markers, as git writes them."""
    lines = (*hunk.ours, *hunk.theirs)
    end = b"\r\n" if lines and lines[0].endswith(b"\r\n") else b"\n"
    sides = [b"".join(side) for side in (hunk.ours, hunk.theirs)]
    ours, theirs = (side if side.endswith(b"\n") or not side else side + end for side in sides)
    return b"<<<<<<< ours" + end + ours + b"=======" + end + theirs + b">>>>>>> theirs" + end


def _collide(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether a later range overlaps an earlier one, or both insert at one point."""
    if one[0] == one[1] and other[0] == other[1]:
        return one[0] == other[0]
    return other[0] < one[1]


def _changes(base: list[bytes], new: list[bytes], work: int) -> list[Change]:
    """Return the changes from `base` to `new`: ranges of base lines, each with its replacement."""
    changes: list[Change] = []
    i = j = 0
    for x, y, length in [*matches(base, new, work=work), (len(base), len(new), 0)]:
        if i < x or j < y:
            changes.append((i, x, tuple(new[j:y])))
        i, j = x + length, y + length
    return changes
