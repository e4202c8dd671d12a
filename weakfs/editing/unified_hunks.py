"""The difference of two texts as hunks of a unified diff. Pure: lines in, lines out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from weakfs.reducers.merging.line_merge import WORK, matches_or_ends

CONTEXT = 3

# (start in old, stop in old, start in new, stop in new), counted in lines.
Change: TypeAlias = tuple[int, int, int, int]


def hunks(old: list[bytes], new: list[bytes]) -> Iterator[bytes]:
    """Yield the hunks between two lists of lines, with three lines of context."""
    for (start, stop, new_start, new_stop), lines in hunk_bodies(old, new, CONTEXT):
        yield b"@@ -%s +%s @@\n" % (_range(start, stop), _range(new_start, new_stop))
        yield from lines


def hunk_bodies(old: list[bytes], new: list[bytes], context: int) -> Iterator[tuple[Change, Iterator[bytes]]]:
    """Yield the place of each hunk, with its lines."""
    group: list[Change] = []
    for change in changes(old, new):
        if group and change[0] - group[-1][1] > 2 * context:
            yield _with_context(group, context, len(old)), _body(old, new, group, context)
            group = []
        group.append(change)
    if group:
        yield _with_context(group, context, len(old)), _body(old, new, group, context)


def count_changes(old: list[bytes], new: list[bytes], *, work: int = WORK) -> tuple[int, int]:
    """Count the lines added and the lines removed.

    If a text cannot be compared within `work` steps, everything between the common first and last lines counts as
    replaced.
    """
    added = removed = 0
    for start, stop, new_start, new_stop in changes(old, new, work):
        added += new_stop - new_start
        removed += stop - start
    return added, removed


def changes(old: list[bytes], new: list[bytes], work: int = WORK) -> Iterator[Change]:
    """Yield the differences between two lists of lines, in order, with as few lines as can be found quickly."""
    i = j = 0
    for x, y, length in [*matches_or_ends(old, new, work=work), (len(old), len(new), 0)]:
        if i < x or j < y:
            yield i, x, j, y
        i, j = x + length, y + length


def _with_context(group: list[Change], context: int, length: int) -> Change:
    before, after = min(context, group[0][0]), min(context, length - group[-1][1])
    return group[0][0] - before, group[-1][1] + after, group[0][2] - before, group[-1][3] + after


def _body(old: list[bytes], new: list[bytes], group: list[Change], context: int) -> Iterator[bytes]:
    at, end, _, _ = _with_context(group, context, len(old))
    for old_start, old_stop, insert_start, insert_stop in group:
        yield from _lines(b" ", old[at:old_start])
        yield from _lines(b"-", old[old_start:old_stop])
        yield from _lines(b"+", new[insert_start:insert_stop])
        at = old_stop
    yield from _lines(b" ", old[at:end])


def _range(start: int, stop: int) -> bytes:
    length = stop - start
    if length == 1:
        return b"%d" % (start + 1)
    # An empty range is denoted by the number of the line before it.
    return b"%d,%d" % (start + 1 if length else start, length)


def _lines(sign: bytes, lines: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"
