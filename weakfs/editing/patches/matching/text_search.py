"""Finding lines in the text itself, which is faster for a few searches than indexing all lines first."""

from __future__ import annotations

from collections.abc import Sequence


class TextSearch:
    """Consecutive lines, found by `str.find`; a carriage return at the end of a line is not part of it.

    A search costs O(text); many searches are faster with `LineIndex`. Each search starts near the place that was found
    last, as successive hunks of a patch usually do: only the lines in between are counted.
    """

    __slots__ = ("_line", "_lines", "_offset", "_text", "_wanted")

    def __init__(self, lines: Sequence[str], text: str | None = None) -> None:
        """Prepare a search of lines, or of their `text` if they are known to have no carriage returns."""
        # A line break is before and after each line of the text. The offset of a line is that of the break before it.
        self._text = _joined(lines) if text is None else f"\n{text}" if text[-1:] in ("", "\n") else f"\n{text}\n"
        self._line = self._offset = 0
        # The lines found last, and their text.
        self._lines: Sequence[str] = ()
        self._wanted = ""

    def find(self, lines: Sequence[str], start: int) -> int:
        """Return the first position of consecutive lines, from `start` on; -1 if there is none."""
        offset = self._offset_of(start)
        wanted = _joined(lines)
        found = self._text.find(wanted, offset) if offset >= 0 else -1
        if found < 0:
            return -1
        self._lines, self._wanted = lines, wanted
        self._line = start + self._text.count("\n", offset, found)
        self._offset = found
        return self._line

    def occurs_again(self, lines: Sequence[str], at: int) -> bool:
        """Return whether the lines at `at` also occur together somewhere after it."""
        if at == self._line and lines is self._lines:
            return self._text.find(self._wanted, self._offset + 1) >= 0
        return self._text.find(_joined(lines), self._offset_of(at) + 1) >= 0

    def is_at(self, lines: Sequence[str], at: int) -> bool:
        """Return whether lines are at `at`."""
        offset = self._offset_of(at) if at >= 0 else -1
        return offset >= 0 and self._text.startswith(_joined(lines), offset)

    def _offset_of(self, line: int) -> int:
        """Return the offset of a line; -1 if the text has fewer lines. O(lines between it and the last place)."""
        at, offset = self._line, self._offset
        while at < line and offset >= 0:
            offset = self._text.find("\n", offset + 1)
            at += 1
        while at > line:
            offset = self._text.rfind("\n", 0, offset)
            at -= 1
        return offset


def _joined(lines: Sequence[str]) -> str:
    text = "\n".join(("", *lines, ""))
    return text.replace("\r\n", "\n") if "\r" in text else text
