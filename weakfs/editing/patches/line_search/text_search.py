"""Finding and replacing lines in the text itself, which is faster for a few searches than splitting or indexing it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from weakfs.editing.patches.line_search.line_index import Run

# A piece of a text: start, stop, and the replacement.
TextPiece = tuple[int, int, str]


class TextSearch:
    """Consecutive lines, found by `str.find`; a carriage return at the end of a line is not part of it.

    A search costs O(text); many searches are faster with `LineIndex`. Lines are counted from the nearest earlier place
    that was looked up, which is usually near for successive hunks of a patch.
    """

    __slots__ = ("_at", "_found", "_lines", "_offset", "_offsets", "_text", "_wanted")

    def __init__(self, text: str) -> None:
        """Prepare a search of a text that ends with a line break, or is empty."""
        # A line break is before and after each line. The offset of a line is that of the break before it: without
        # carriage returns, that is where the line begins in the given text.
        self._text = _without_returns("\n" + text)
        # The lines that were looked up, in order, and their offsets.
        self._lines = [0]
        self._offsets = [0]
        # The lines found last, their text, and their position and offset.
        self._found: Sequence[str] = ()
        self._wanted = ""
        self._at = self._offset = 0

    def find(self, lines: Sequence[str], start: int) -> int:
        """Return the first position of consecutive lines, from `start` on; -1 if there is none."""
        offset = self.offset_of(start)
        wanted = _joined(lines)
        found = self._text.find(wanted, offset) if offset >= 0 else -1
        if found < 0:
            return -1
        self._found, self._wanted, self._offset = lines, wanted, found
        self._at = at = start + self._text.count("\n", offset, found)
        after = bisect_right(self._lines, at)
        self._lines.insert(after, at)
        self._offsets.insert(after, found)
        return at

    def occurs_again(self, lines: Sequence[str], at: int) -> bool:
        """Return whether the lines at `at` also occur together somewhere after it."""
        if at == self._at and lines is self._found:
            return self._text.find(self._wanted, self._offset + 1) >= 0
        return self._text.find(_joined(lines), self.offset_of(at) + 1) >= 0

    def is_at(self, lines: Sequence[str], at: int) -> bool:
        """Return whether lines are at `at`."""
        offset = self.offset_of(at) if at >= 0 else -1
        return offset >= 0 and self._text.startswith(_joined(lines), offset)

    def offset_of(self, line: int) -> int:
        """Return the offset of a line; -1 if the text has fewer lines. O(lines after the last place before it)."""
        after = bisect_right(self._lines, line)
        at, offset = self._lines[after - 1], self._offsets[after - 1]
        if at < line:
            while at < line and offset >= 0:
                offset = self._text.find("\n", offset + 1)
                at += 1
            if offset >= 0:
                self._lines.insert(after, line)
                self._offsets.insert(after, offset)
        return offset


def _joined(lines: Sequence[str]) -> str:
    return _without_returns("\n".join(("", *lines, "")))


def _without_returns(text: str) -> str:
    return text.replace("\r\n", "\n") if "\r" in text else text


def text_of(lines: Iterable[str]) -> str:
    """Return lines with a line break after each."""
    return "".join([line + "\n" for line in lines])


def text_pieces(lines: Sequence[str], runs: Sequence[Run]) -> Iterator[TextPiece]:
    """Yield the runs of lines as pieces of their text. O(lines)."""
    at = offset = 0
    for start, stop, inserted in runs:
        first = offset + sum(map(len, lines[at:start])) + start - at
        offset = first + sum(map(len, lines[start:stop])) + stop - start
        at = stop
        yield first, offset, text_of(inserted)


def with_pieces(text: str, pieces: Iterable[TextPiece]) -> str:
    """Return a text with pieces of it replaced, in order."""
    made: list[str] = []
    done = 0
    for start, stop, content in pieces:
        made += (text[done:start], content)
        done = stop
    made.append(text[done:])
    return "".join(made)
