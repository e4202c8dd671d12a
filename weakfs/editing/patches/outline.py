"""Outline of a text, as its indentation shows them: a line and what is further in below it.

An anchor of a patch names one. Read without knowing the language: lines that only close brackets belong to the block
that they close, and under a line that opens none its block is what stands beside it, down to the end of the block
that both are in. Under a heading of Markdown or of an INI file it is what stands above the next one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

TAB = 8
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
        # The same for a line as for the one above it that ends where it does: no stretch is walked twice for them.
        self._siblings: list[tuple[int, int, int]] = []

    def end(self, first: int) -> int:
        """Give the line (from 0) before which the block ends that begins at a line. O(block)."""
        if first not in self._ends:
            self._ends[first] = self._end(first)
        return self._ends[first]

    def _end(self, first: int) -> int:
        text = self.lines[first].strip()
        if _MARKDOWN.match(text) and self._depth(first) == 0 and not _DIRECTIVE.match(text):
            return self._end_of_section(first, text)
        if _SECTION.match(text) and self._depth(first) == 0:
            return next(
                (at for at in range(first + 1, len(self.lines)) if self.lines[at].startswith("[")), len(self.lines)
            )
        base = self._depth(first)
        end = self._below(first, base, is_inner=True)
        if any(self.lines[at].strip() for at in range(first + 1, end)):
            return end
        for start, stop, depth in self._siblings:
            if depth == base and start <= first < stop:
                return stop
        stop = self._below(first, base, is_inner=False)
        self._siblings.append((first, stop, base))
        return stop

    def _below(self, first: int, base: int, *, is_inner: bool) -> int:
        """Give the first line that is no further in than the block's, or further out where beside is enough."""
        last = first
        for at in range(first + 1, len(self.lines)):
            text = self.lines[at].strip()
            if not text or _DIRECTIVE.match(text):
                continue
            depth = self._depth(at)
            if depth < base or (is_inner and depth == base and not text.startswith(_BRACKETS)):
                return last + 1
            last = at
        return len(self.lines)

    def _end_of_section(self, first: int, text: str) -> int:
        level = len(text) - len(text.lstrip("#"))
        for at in range(first + 1, len(self.lines)):
            heading = _MARKDOWN.match(self.lines[at])
            if heading and len(heading[1]) <= level:
                return at
        return len(self.lines)

    def _depth(self, at: int) -> int:
        line = self.lines[at]
        indent = line[: len(line) - len(line.lstrip())]
        return len(indent.expandtabs(TAB)) if "\t" in indent else len(indent)
