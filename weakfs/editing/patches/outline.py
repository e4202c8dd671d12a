"""The outline of a text, as its indentation shows it: a line and the block of what is further in below it.

An anchor of a patch names a block. Read without knowing the language: lines that only close brackets belong to the
block that they close, and under a line that opens none its block is what stands beside it, down to the end of the
block that both are in. Under a heading of Markdown or of an INI file it is what stands above the next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

TAB = 8
# To find out whether a line is in a block, so many lines are read before the end of the block is looked for.
NEAR = 100

# Lines at the depth of a block's first one that belong to it, and lines whose depth says nothing.
_BRACKETS = ("{", "}", ")", "]")
_DIRECTIVE = re.compile(r"#\s*(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma|region|endregion)\b")
_MARKDOWN = re.compile(r"(#{1,6})\s")
_SECTION = re.compile(r"\[.*\]\s*$")


class Outline:
    """The blocks of lines, which must not change meanwhile."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self._ends: dict[int, int] = {}
        # Stretches of lines beside one another: from which to before which, and how deep they are.
        self._beside: list[tuple[int, int, int]] = []

    def contains(self, first: int, at: int) -> bool:
        """Tell whether a line is in the block that begins at another. O(lines between them)."""
        if at <= first:
            return at == first
        if first in self._ends or at - first > NEAR:
            return at < self.end(first)
        is_behind = self._rule(first)
        return not any(is_behind(number) for number in range(first + 1, min(at + 1, len(self.lines))))

    def end(self, first: int) -> int:
        """Give the line (from 0) before which the block ends that begins at a line. O(block)."""
        if first not in self._ends:
            self._ends[first] = self._end(first)
        return self._ends[first]

    def _end(self, first: int) -> int:
        depth = self._depth(first)
        is_beside = not self._is_heading(first) and not self._opens(first)
        if is_beside:
            # No stretch is read again for each line in it.
            for start, stop, there in self._beside:
                if there == depth and start <= first < stop:
                    return stop
        is_behind = self._rule(first)
        last = first
        for number in range(first + 1, len(self.lines)):
            if is_behind(number):
                break
            if self.lines[number].strip():
                last = number
        else:
            last = len(self.lines) - 1
        if is_beside:
            self._beside.append((first, last + 1, depth))
        return last + 1

    def _rule(self, first: int) -> Callable[[int], bool]:
        """Give what tells whether a line is behind the block that begins at a line."""
        text = self.lines[first]
        if self._is_heading(first):
            heading = _MARKDOWN.match(text)
            if heading is None:
                return lambda at: self.lines[at].startswith("[")
            level = len(heading[1])
            return lambda at: (below := _MARKDOWN.match(self.lines[at])) is not None and len(below[1]) <= level
        depth = self._depth(first)
        if self._opens(first):
            return lambda at: self._is_out(at, depth, or_beside=True)
        return lambda at: self._is_out(at, depth, or_beside=False)

    def _is_heading(self, at: int) -> bool:
        text = self.lines[at]
        return bool(_SECTION.match(text) or (_MARKDOWN.match(text) and not _DIRECTIVE.match(text)))

    def _opens(self, first: int) -> bool:
        """Tell whether the lines below a line are further in, or brackets around those that are."""
        depth = self._depth(first)
        for at in range(first + 1, len(self.lines)):
            text = self.lines[at].strip()
            if text and not _DIRECTIVE.match(text):
                return self._depth(at) > depth or (self._depth(at) == depth and text.startswith(_BRACKETS))
        return False

    def _is_out(self, at: int, depth: int, *, or_beside: bool) -> bool:
        line = self.lines[at]
        text = line.strip()
        if not text:
            return False
        there = self._depth(at)
        if there > depth or (there == depth and (not or_beside or text.startswith(_BRACKETS))):
            return False
        return not _DIRECTIVE.match(text)

    def _depth(self, at: int) -> int:
        line = self.lines[at]
        indent = line[: len(line) - len(line.lstrip())]
        return len(indent.expandtabs(TAB)) if "\t" in indent else len(indent)
