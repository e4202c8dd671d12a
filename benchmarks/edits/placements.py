"""The places where the hunks of a V4A patch may go, found by trying every place: the slow reference answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.edits.calls import Hunk
from benchmarks.edits.corpus import indent_of

Lines = Sequence[str]

MOST_TRIED = 3000


def places(lines: Lines, hunk: Hunk) -> list[int]:
    """Return every place where the old lines of a hunk occur and its anchors allow it."""
    old = hunk.old
    stops = range(len(lines) - len(old) + 1)
    fits = [at for at in stops if tuple(lines[at : at + len(old)]) == old]
    if hunk.at_end:
        fits = [at for at in fits if at + len(old) == len(lines)]
    if not hunk.anchors:
        return fits if old else [len(lines)]
    if not old:
        return sorted(start for start, _ in _regions(lines, hunk.anchors))
    return sorted({at for start, stop in _regions(lines, hunk.anchors) for at in _within(fits, start, stop)})


def _within(fits: Sequence[int], start: int, stop: int) -> list[int]:
    """Return the places in a block; for an anchor with nothing indented below it, the first place after it."""
    inside = [at for at in fits if start <= at < stop]
    behind = [at for at in fits if at >= start]
    return inside or (behind[:1] if start == stop else [])


def _regions(lines: Lines, anchors: Sequence[str], begin: int = 0, end: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the blocks that nested anchors name: the lines indented below each line that the last anchor matches."""
    stop = len(lines) if end is None else end
    wanted = anchors[0].strip()
    exact = [number for number in range(begin, stop) if lines[number].strip() == wanted]
    found = exact or [number for number in range(begin, stop) if lines[number].strip().startswith(wanted)]
    for number in found:
        last = _block_end(lines, number)
        if len(anchors) == 1:
            yield number + 1, last
        else:
            yield from _regions(lines, anchors[1:], number + 1, last)


def _block_end(lines: Lines, number: int) -> int:
    width = len(indent_of(lines[number]))
    end = number + 1
    for at in range(number + 1, len(lines)):
        if lines[at].strip():
            if len(indent_of(lines[at])) <= width:
                break
            end = at + 1
    return end


def undecided(lines: Lines, hunks: Sequence[Hunk]) -> list[Hunk]:
    """Return the hunks that fit in several places after the previous one, or only in a wrong one."""
    found: list[Hunk] = []
    cursor = 0
    for hunk in hunks:
        if [at for at in places(lines, hunk) if at >= cursor] != [hunk.start]:
            found.append(hunk)
        cursor = hunk.start + behind_changes(hunk)
    return found


def has_several_results(lines: Lines, hunks: Sequence[Hunk]) -> bool:
    """Return whether the hunks, in order, can be applied to a text in ways with different results."""
    found: set[tuple[str, ...]] = set()
    for tried, chosen in enumerate(_arrangements(lines, [places(lines, hunk) for hunk in hunks], hunks)):
        found.add(applied(lines, hunks, chosen))
        if len(found) > 1 or tried > MOST_TRIED:
            return True
    return False


def _arrangements(
    lines: Lines, each: Sequence[list[int]], hunks: Sequence[Hunk], cursor: int = 0
) -> Iterator[tuple[int, ...]]:
    if not hunks:
        yield ()
        return
    for at in each[0]:
        if at >= cursor:
            for others in _arrangements(lines, each[1:], hunks[1:], at + behind_changes(hunks[0])):
                yield (at, *others)


def before_changes(hunk: Hunk) -> int:
    """Return how many old lines there are before the first change."""
    return next(number for number, line in enumerate(hunk.lines) if line.mark != " ")


def behind_changes(hunk: Hunk) -> int:
    """Return how many old lines there are up to the end of the last change."""
    count, behind = 0, 0
    for line in hunk.lines:
        count += line.mark != "+"
        behind = behind if line.mark == " " else count
    return behind


def applied(lines: Lines, hunks: Sequence[Hunk], chosen: Sequence[int]) -> tuple[str, ...]:
    """Return the lines with each hunk at the chosen place; neighbouring hunks may share context."""
    made: list[str] = []
    at = 0
    for hunk, start in zip(hunks, chosen, strict=True):
        number = start
        for line in hunk.lines:
            if line.mark == "+":
                made += [*lines[at:number], line.text]
                at = max(at, number)
            else:
                number += 1
                if line.mark == "-":
                    made += lines[at : number - 1]
                    at = number
    return (*made, *lines[at:])
