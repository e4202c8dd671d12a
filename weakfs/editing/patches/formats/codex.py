"""Updating a text as Codex's own `apply_patch` does, byte for byte, for sessions that were recorded with it.

The differences from `apply_patch`: the first place that fits is used, an anchor must exist, hunks that only add lines
go to the end of the file, context lines are replaced with those in the patch, a text ends with a newline afterwards,
and a text that ended with a blank line loses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from weakfs.editing.patches.line_search.equivalences import CODEX_FOLDS, LEVELS
from weakfs.editing.patches.line_search.line_index import LineIndex, Run, spliced
from weakfs.editing.patches.matching.hunk_error import Misfit
from weakfs.editing.patches.operations import Hunk
from weakfs.editing.patches.rewrite import HunkMisfit


def rewrite_as_codex(text: str, hunks: Sequence[Hunk]) -> tuple[str, tuple[str, ...]]:
    """Return the new text, and how each hunk matched. Raises `HunkMisfit` for the first that does not match."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    search = _Search(lines)
    runs: list[Run] = []
    for number, hunk in enumerate(hunks):
        cursor = search.cursor
        try:
            runs.append(search.run_of(hunk))
        except Misfit as error:
            raise HunkMisfit([(number, hunk, error, cursor)]) from None
    runs.sort(key=lambda run: run[0])
    made = _replaced(lines, runs)
    if not made or made[-1]:
        made.append("")
    return "\n".join(made), tuple(search.fits)


class _Search:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.cursor = 0
        self.fits: list[str] = []
        self._indexes: dict[int, LineIndex] = {}

    def run_of(self, hunk: Hunk) -> Run:
        if len(hunk.anchors) > 1:
            raise Misfit("it has several anchors")
        for anchor in hunk.anchors:
            found = self._seek([anchor], self.cursor, at_end=False)
            if found is None:
                raise Misfit(f"its anchor {anchor!r} is not in the file")
            self.cursor = found[0] + 1
        old, new = hunk.old, hunk.new
        if not old:
            end = len(self.lines)
            at = end - 1 if self.lines and not self.lines[-1] else end
            self.fits.append(LEVELS[0])
            return at, at, new
        found = self._seek(old, self.cursor, at_end=hunk.at_end)
        if found is None and not old[-1]:
            old.pop()
            if new and not new[-1]:
                new.pop()
            found = self._seek(old, self.cursor, at_end=hunk.at_end)
        if found is None:
            raise Misfit("")
        at, level = found
        self.cursor = at + len(old)
        self.fits.append(LEVELS[level])
        return at, self.cursor, new

    def _seek(self, wanted: list[str], start: int, *, at_end: bool) -> tuple[int, int] | None:
        if not wanted:
            return start, 0
        if len(wanted) > len(self.lines):
            return None
        if at_end:
            start = len(self.lines) - len(wanted)
        for level, fold in enumerate(CODEX_FOLDS):
            index = self._indexes.get(level)
            if index is None:
                index = self._indexes[level] = LineIndex(self.lines, fold, self._indexes.get(0))
            at = index.find(wanted, start)
            if at >= 0:
                return at, level
        return None


def _replaced(lines: list[str], runs: list[Run]) -> list[str]:
    """Replace runs from the last to the first, as Codex does; they may overlap if one is tied to the end."""
    if all(one[1] <= other[0] and one[0] < other[0] for one, other in pairwise(runs)):
        return spliced(lines, runs)
    made = list(lines)
    for start, stop, inserted in reversed(runs):
        made[start:stop] = inserted
    return made
