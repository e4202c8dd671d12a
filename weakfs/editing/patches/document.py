"""A text file as lines, each with its own ending, for edits that leave all other bytes as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weakfs.editing.patches.matching.equivalences import FOLDS
from weakfs.editing.patches.matching.line_index import LineIndex, Run, spliced

BYTE_ORDER_MARK = "\ufeff"


class Document:
    """The lines of a text: without their `\\n`, with the `\\r` before it.

    `ended` tells whether the text ends with a newline, `is_marked` whether it starts with a byte order mark, which is
    then no part of the first line. The last line of a text that does not end with one is given the `\\r` of the
    line before it, so that a line can follow; `text` leaves it out, unless the text `ends_in_return` by itself.
    """

    __slots__ = ("_changes", "_indexes", "changed_once", "ended", "ends_in_return", "is_marked", "lines")

    def __init__(self, text: str) -> None:
        self.is_marked = text.startswith(BYTE_ORDER_MARK)
        self.lines = text.removeprefix(BYTE_ORDER_MARK).split("\n")
        self.ended = not self.lines[-1]
        self.ends_in_return = self.lines[-1].endswith("\r")
        if self.ended:
            self.lines.pop()
        elif len(self.lines) > 1 and self.lines[-2].endswith("\r") and not self.ends_in_return:
            self.lines[-1] += "\r"
        self._indexes: dict[int, LineIndex] = {}
        self._changes = 0
        # The runs that were replaced, if that was done once: they are known by the lines of the text as it was.
        self.changed_once: Sequence[Run] | None = None

    @property
    def is_changed(self) -> bool:
        """Whether any lines were replaced."""
        return self._changes > 0

    def text(self) -> str:
        """Give the text. O(text)."""
        text = "\n".join(self.lines)
        if self.ended:
            text += "\n" * bool(self.lines)
        elif not self.ends_in_return:
            text = text.removesuffix("\r")
        return BYTE_ORDER_MARK + text if self.is_marked else text

    def has_return(self, at: int) -> bool:
        """Tell whether a line has a carriage return that is in the text."""
        is_given = at == len(self.lines) - 1 and not self.ended and not self.ends_in_return
        return self.lines[at].endswith("\r") and not is_given

    def show_mark(self) -> None:
        """Take the byte order mark as the first character of the first line, which a patch then may change."""
        if self.is_marked:
            self.is_marked = False
            self.ended = self.ended and bool(self.lines)
            self.replace([(0, 1, [BYTE_ORDER_MARK + line for line in self.lines[:1] or [""]])])

    def hide_mark(self) -> None:
        """Take it from the first line again."""
        if self.lines and self.lines[0].startswith(BYTE_ORDER_MARK):
            self.is_marked = True
            self.replace([(0, 1, [self.lines[0].removeprefix(BYTE_ORDER_MARK)])])

    def find(self, lines: Sequence[str], level: int, start: int) -> int:
        """Give where lines first stand together, compared as at that level of `FOLDS`; -1 for nowhere."""
        return self._index(level).find(lines, start)

    def is_again(self, lines: Sequence[str], level: int, at: int) -> bool:
        """Tell whether lines that stand at a place also stand behind it, compared as at that level."""
        return self._index(level).is_again(lines, at)

    def is_at(self, lines: Sequence[str], level: int, at: int) -> bool:
        """Tell whether lines stand at a place, compared as at that level."""
        return self._index(level).is_at(lines, at)

    def places(self, lines: Sequence[str], level: int, start: int, stop: int | None = None) -> Iterator[int]:
        """Go through where lines stand together, from `start` to before `stop`, compared as at that level."""
        for at in self._index(level).places(lines, start):
            if stop is not None and at >= stop:
                return
            yield at

    def _index(self, level: int) -> LineIndex:
        found = self._indexes.get(level)
        if found is None:
            base = self._index(0) if level else None
            found = self._indexes[level] = LineIndex(self.lines, FOLDS[level], base)
        return found

    def replace(self, runs: Sequence[Run]) -> None:
        """Replace runs of lines, in order and apart from one another. O(lines), as fast as copying."""
        if runs:
            self._changes += 1
            self.changed_once = runs if self._changes == 1 else None
            for index in self._indexes.values():
                index.replace(runs, self.lines)
            self.lines = spliced(self.lines, runs)
