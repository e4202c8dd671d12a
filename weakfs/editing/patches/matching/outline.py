"""The outline of a text, according to its indentation: a line and the block of deeper lines below it.

An anchor of a patch names a block. The language is not known: a block that a brace or a tag opens ends where it is
closed. For a line that opens no block, such as a decorator, the block is the lines at its depth, up to a blank line
or to the end of the first block that they open. For a heading of Markdown or of an INI file it is the text up to the
next one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from weakfs.editing.line_context import TRIPLE_QUOTES, indent
from weakfs.editing.patches.document import Document
from weakfs.editing.patches.matching.hunk_error import Misfit

TAB = 8
# To find out whether a line is in a block, this many lines are read before the end of the block is computed.
NEAR = 100
# The maximum number of lines read to find the ends of all blocks, about a second of work: an anchor may name a thousand
# lines, each with a block as long as the file.
MOST_READ = 1_500_000

# Lines at the depth of a block's first line that belong to it, and lines whose depth is not significant.
_BRACKETS = ("{", "}", ")", "]")
_DIRECTIVE = re.compile(r"#\s*(?:if|ifdef|ifndef|else|elif|endif|define|undef|include|pragma|region|endregion)\b")
_MARKDOWN = re.compile(r"(#{1,6})\s")
_SECTION = re.compile(r"\[.*\]\s*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_TAG = re.compile(r"<([A-Za-z][\w.-]*)\b[^<]*(?<!/)>$")
_COMMENT = re.compile(r"#|//|/\*|--|;")


class Outline:
    """The blocks of a document's lines; the document must not change in the meantime."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._ends: dict[int, int] = {}
        self._read = 0
        # For each line, the first line of code from there on; the number of lines if there is none.
        self._code: list[int] = []

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the document."""
        return self._document.lines

    def contains(self, first: int, at: int) -> bool:
        """Return whether a line is in the block that begins at another. O(lines between them)."""
        if at <= first:
            return at == first
        if first in self._ends or at - first > NEAR:
            return at < self.end(first)
        is_behind = self._rule(first)
        return not any(is_behind(number) for number in range(first + 1, min(at + 1, len(self.lines))))

    def end(self, first: int) -> int:
        """Return the line (from 0) after the block that begins at a line. O(block).

        Raises `Misfit` if the blocks requested so far are too many and too long.
        """
        if first not in self._ends:
            if self._read > MOST_READ:
                raise Misfit(
                    "its anchors name too many long blocks to look through; give an anchor whose line is in the file "
                    "once, or more lines of context without an anchor",
                    is_all=True,
                )
            self._ends[first] = self._end(first)
        return self._ends[first]

    def _end(self, first: int) -> int:
        is_behind = self._rule(first)
        last = number = first
        for number in range(first + 1, len(self.lines)):
            if is_behind(number):
                break
            if self.lines[number].strip():
                last = number
        else:
            last = len(self.lines) - 1
        self._read += number - first
        return last + 1

    def _rule(self, first: int) -> Callable[[int], bool]:
        """Return a predicate for lines in ascending order: whether each is after the block of a line."""
        text = self.lines[first]
        if _SECTION.match(text):
            return lambda at: self.lines[at].startswith("[")
        if self._is_heading(first):
            return self._below_heading(first)
        if self._is_underlined(first):
            return self._is_underlined
        depth = self._depth(first)
        tag = _TAG.match(text.strip())
        if tag:
            return self._until_closed(lambda at: self._text(at).startswith(f"</{tag[1]}"), depth)
        below = next((at for at in range(first + 1, len(self.lines)) if self._says_depth(at)), None)
        if below is None:
            return lambda at: False
        if text.rstrip().endswith("{") or (self._depth(below) == depth and self._text(below).startswith("{")):
            return self._until_closed(lambda at: self._text(at).startswith("}"), depth)
        if self._depth(below) > depth or (self._depth(below) == depth and self._text(below).startswith(_BRACKETS)):
            return self._outside_strings(lambda at: self._is_out(at, depth))
        if text.rstrip().endswith(":") and self._depth(below) == depth and self._text(below).startswith("- "):
            # A list in YAML may be no deeper than its key.
            return lambda at: (
                self._is_out(at, depth) and not (self._depth(at) == depth and self._text(at).startswith("- "))
            )
        return self._paragraph(first, depth)

    def _below_heading(self, first: int) -> Callable[[int], bool]:
        """Return a predicate for the end of a Markdown section, which ignores headings inside a fence."""
        found = _MARKDOWN.match(self.lines[first])
        assert found is not None
        level, fence = len(found[1]), ""

        def is_behind(at: int) -> bool:
            nonlocal fence
            mark = _FENCE.match(self.lines[at])
            if mark and (not fence or mark[1].startswith(fence)):
                fence = "" if fence else mark[1]
            below = None if fence else _MARKDOWN.match(self.lines[at])
            return below is not None and len(below[1]) <= level

        return is_behind

    def _until_closed(self, closes: Callable[[int], bool], depth: int) -> Callable[[int], bool]:
        """Return a predicate for lines after the one that closes a block; nothing else ends it."""
        is_closed = False

        def is_behind(at: int) -> bool:
            nonlocal is_closed
            text = self._text(at)
            if is_closed and text:
                return not (text.startswith(_BRACKETS) and self._depth(at) == depth)
            if text and self._depth(at) <= depth and closes(at):
                is_closed = not text.endswith(("{", "("))
            return False

        return is_behind

    def _outside_strings(self, is_out: Callable[[int], bool]) -> Callable[[int], bool]:
        """Return a predicate for the end of a block that ignores lines inside a multi-line string."""
        in_string = False

        def is_behind(at: int) -> bool:
            nonlocal in_string
            was_in_string = in_string
            in_string ^= sum(map(self.lines[at].count, TRIPLE_QUOTES)) % 2 == 1
            return not was_in_string and is_out(at)

        return is_behind

    def _paragraph(self, first: int, depth: int) -> Callable[[int], bool]:
        """Return a predicate for the end of lines of equal depth: a blank line, or the end of their first block."""
        opened = False

        def is_behind(at: int) -> bool:
            nonlocal opened
            if not self._says_depth(at):
                return False
            there = self._depth(at)
            if there < depth:
                return True
            if there > depth:
                opened = True
                return False
            if self._text(at).startswith(_BRACKETS):
                return False
            return opened or not self.lines[at - 1].strip()

        return is_behind

    def _is_heading(self, at: int) -> bool:
        text = self.lines[at]
        return bool(_MARKDOWN.match(text) and not _DIRECTIVE.match(text))

    def _is_underlined(self, at: int) -> bool:
        below = self.lines[at + 1].rstrip() if at + 1 < len(self.lines) else ""
        if not self.lines[at][:1].isalnum() or not below or below[0] not in "=-~^" or set(below) != {below[0]}:
            return False
        return len(below) > 2 or (below[0] == "=" and len(below) >= len(self.lines[at].rstrip()))

    def _says_depth(self, at: int) -> bool:
        text = self._text(at)
        return bool(text) and not _DIRECTIVE.match(text)

    def _is_out(self, at: int, depth: int) -> bool:
        if not self._says_depth(at):
            return False
        there = self._depth(at)
        if there > depth or (there == depth and self._text(at).startswith(_BRACKETS)):
            return False
        if not _COMMENT.match(self._text(at)):
            return True
        # A comment is as deep as the line below it.
        below = self._next_code(at + 1)
        return below == len(self.lines) or self._is_out(below, depth)

    def _next_code(self, at: int) -> int:
        if not self._code:
            # The numbers are found all at once: otherwise each of several consecutive comments would look for the line
            # below all of them.
            self._code = [len(self.lines)] * (len(self.lines) + 1)
            for line in range(len(self.lines) - 1, -1, -1):
                self._code[line] = line if self._is_code(line) else self._code[line + 1]
        return self._code[at]

    def _is_code(self, at: int) -> bool:
        return self._says_depth(at) and not _COMMENT.match(self._text(at))

    def _text(self, at: int) -> str:
        return self.lines[at].strip()

    def _depth(self, at: int) -> int:
        given = indent(self.lines[at])
        return len(given.expandtabs(TAB)) if "\t" in given else len(given)
