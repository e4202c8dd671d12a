"""The lines that the anchors of a patch name: compared exactly, without white space, or by their beginning."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.editing.normalization import is_inside_word
from weakfs.editing.patches.document import Document
from weakfs.editing.patches.errors import quoted
from weakfs.editing.patches.line_search.equivalences import FOLDS, FREEST
from weakfs.editing.patches.matching.hunk_error import MAX_PLACES, Misfit
from weakfs.editing.patches.matching.outline import Outline

# The maximum number of lines that are examined for one anchor.
MAX_ANCHORS = 1000

# The text after `@@` in a unified diff, and text that does not name a line at all.
_NUMBERS = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?")
_NO_ANCHOR = re.compile(r"[\s.…@]*")


@frozen
class Anchors:
    """The lines of one document that anchors may name; the document must not change in the meantime."""

    document: Document
    outline: Outline
    _occurrences: dict[tuple[str, int], list[int]] = field(factory=dict, init=False, repr=False)

    def named(self, anchors: tuple[str, ...]) -> list[str]:
        """Return the anchors without the line numbers and the trailing `@@` of a unified diff."""
        named = [self._unmarked(_NUMBERS.sub("", anchor)) for anchor in anchors]
        return [anchor for anchor in named if not _NO_ANCHOR.fullmatch(anchor)]

    def _unmarked(self, anchor: str) -> str:
        bare = anchor.rstrip().removesuffix("@@").rstrip()
        is_marked = bare != anchor.rstrip() and self.document.find([anchor], FREEST, 0) < 0
        return bare if is_marked else anchor

    def blocks(self, anchors: Sequence[str], cursor: int) -> Iterator[tuple[int, list[int], tuple[str, ...]]]:
        """Yield the first lines of the blocks that anchors name, with the level of comparison and notes.

        Lines after the previous hunk come first, then those above it, and finally lines that begin with an anchor.
        """
        end = len(self.document.lines)
        seen: set[int] = set()
        for start, stop in ((cursor, end), (0, cursor)):
            for level in range(FREEST + 1):
                lines = [*islice(self.document.places(anchors[:1], level, start, stop), MAX_ANCHORS)]
                blocks = [first for first in self._nested(anchors, lines) if first not in seen]
                seen.update(blocks)
                if blocks:
                    yield level, blocks, ()
        if not seen:
            first, notes = self._by_beginning(anchors)
            if first is not None:
                yield FREEST, [first], notes

    def _nested(self, anchors: Sequence[str], lines: list[int]) -> list[int]:
        """Return the lines of the last anchor, each in the block of the previous one; the first one is at `lines`."""
        for anchor in anchors[1:]:
            inner: dict[int, None] = {}
            reached = -1
            for first in lines:
                # Parts already searched in a previous block are not searched again.
                found = self._lines_inside(anchor, max(first, reached), self.outline.end(first))
                inner.update(dict.fromkeys(found))
                reached = max(reached, *found, -1)
                if len(inner) >= MAX_ANCHORS:
                    break
            lines = [*islice(inner, MAX_ANCHORS)]
        return lines

    def _lines_inside(self, anchor: str, first: int, end: int) -> list[int]:
        for level in range(FREEST + 1):
            if (anchor, level) not in self._occurrences:
                self._occurrences[anchor, level] = [*self.document.places([anchor], level, 0)]
            lines = self._occurrences[anchor, level]
            inside = lines[bisect_right(lines, first) : bisect_left(lines, end)][:MAX_ANCHORS]
            if inside:
                return inside
        return []

    def _by_beginning(self, anchors: Sequence[str]) -> tuple[int | None, tuple[str, ...]]:
        """Return the block of anchors, some of them only beginnings of lines, if each matches a single line."""
        start, stop = 0, len(self.document.lines)
        notes: list[str] = []
        first: int | None = None
        for anchor in anchors:
            lines = self._lines_inside(anchor, start - 1, stop)
            if not lines:
                lines = self._beginning_with(anchor, start, stop)
                if len(lines) == 1:
                    text = quoted(self.document.lines[lines[0]].strip())
                    notes.append(f"its anchor {quoted(anchor.strip())} was taken to mean line {lines[0] + 1}, {text}")
            if len(lines) != 1:
                return None, ()
            first = lines[0]
            start, stop = first + 1, self.outline.end(first)
        return first, tuple(notes)

    def _beginning_with(self, anchor: str, start: int, stop: int) -> list[int]:
        (wanted,) = FOLDS[FREEST]([anchor])
        wanted = wanted.rstrip(":{( ")
        if sum(map(str.isalnum, wanted)) < 3:
            return []
        folded = FOLDS[FREEST](self.document.lines[start:stop])
        return [
            at
            for at, line in enumerate(folded, start)
            if line.startswith(wanted) and not is_inside_word(line, len(wanted))
        ]

    def unmatched(self, anchors: list[str]) -> Misfit:
        at, where = -1, ""
        for anchor in anchors:
            end = self.outline.end(at) if at >= 0 else len(self.document.lines)
            lines = self._lines_inside(anchor, at, end) or self._beginning_with(anchor, at + 1, end)
            if not lines:
                return self._missing(anchor, where)
            if len(lines) > 1 and not self._lines_inside(anchor, at, end):
                named = ", ".join(str(line + 1) for line in lines[:MAX_PLACES])
                return Misfit(
                    f"its anchor {quoted(anchor)} is not a whole line of the file, and lines {named} begin with it; "
                    "give the whole line",
                    lines=tuple(line + 1 for line in lines[:MAX_PLACES]),
                    is_all=True,
                )
            at, where = lines[0], f" in the block of {quoted(anchor)}, line {lines[0] + 1}"
        # All anchors exist, but an earlier hunk changes the lines there.
        return Misfit(
            f"an earlier hunk changes the lines at its anchor {quoted(anchors[-1])}; put both in one hunk",
            lines=(at + 1,),
            is_all=True,
        )

    def _missing(self, anchor: str, where: str) -> Misfit:
        elsewhere = self.document.find([anchor], FREEST, 0)
        if elsewhere < 0 or not where:
            return Misfit(f"its anchor {quoted(anchor)} is not in the file")
        return Misfit(f"its anchor {quoted(anchor)} is not{where}, but at line {elsewhere + 1}", lines=(elsewhere + 1,))
