"""A text file as lines, each with its own line end, for edits that leave all other bytes unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weakfs.editing.patches.matching.equivalences import FOLDS
from weakfs.editing.patches.matching.line_index import LineIndex, Run, spliced
from weakfs.editing.patches.matching.text_search import TextSearch

BYTE_ORDER_MARK = "\ufeff"

# An index of all lines pays off after about this many searches of the text, the number for 20 hunks.
MOST_TEXT_SEARCHES = 48


class Document:
    """The lines of a text, without their `\\n` but with the `\\r` before it.

    `ended` is true if the text ends with a newline, and `is_marked` if it starts with a byte order mark, which is then
    not part of the first line. If the text does not end with a newline, its last line gets the `\\r` of the line before
    it, so that another line can follow; `text` omits it, unless the text itself `ends_in_return`. If `has_returns` is
    false, there is no carriage return in any line.
    """

    __slots__ = (
        "_changes",
        "_indexes",
        "_searches_left",
        "_text",
        "_text_search",
        "changed_once",
        "ended",
        "ends_in_return",
        "has_returns",
        "is_marked",
        "lines",
    )

    def __init__(self, text: str) -> None:
        self.is_marked = text.startswith(BYTE_ORDER_MARK)
        self.has_returns = "\r" in text
        # The whole text while it is known to consist of the lines as they are.
        self._text = None if self.has_returns or self.is_marked else text
        self.lines = text.removeprefix(BYTE_ORDER_MARK).split("\n")
        self.ended = not self.lines[-1]
        self.ends_in_return = self.lines[-1].endswith("\r")
        if self.ended:
            self.lines.pop()
        elif len(self.lines) > 1 and self.lines[-2].endswith("\r") and not self.ends_in_return:
            self.lines[-1] += "\r"
        self._indexes: dict[int, LineIndex] = {}
        self._text_search: TextSearch | None = None
        self._searches_left = MOST_TEXT_SEARCHES
        self._changes = 0
        # The runs that were replaced, if there was a single call: they refer to the lines of the original text.
        self.changed_once: Sequence[Run] | None = None

    @property
    def is_changed(self) -> bool:
        """Whether any lines were replaced."""
        return self._changes > 0

    def text(self) -> str:
        """Return the text. O(text)."""
        text = "\n".join(self.lines)
        if self.ended:
            text += "\n" * bool(self.lines)
        elif not self.ends_in_return:
            text = text.removesuffix("\r")
        return BYTE_ORDER_MARK + text if self.is_marked else text

    def has_return(self, at: int) -> bool:
        """Return whether a line has a carriage return that is in the text."""
        is_given = at == len(self.lines) - 1 and not self.ended and not self.ends_in_return
        return self.lines[at].endswith("\r") and not is_given

    def show_mark(self) -> None:
        """Put the byte order mark at the start of the first line, so that a patch can change it."""
        if self.is_marked:
            self.is_marked = False
            self.ended = self.ended and bool(self.lines)
            self.replace([(0, 1, [BYTE_ORDER_MARK + line for line in self.lines[:1] or [""]])])

    def hide_mark(self) -> None:
        """Remove the byte order mark from the first line again."""
        if self.lines and self.lines[0].startswith(BYTE_ORDER_MARK):
            self.is_marked = True
            self.replace([(0, 1, [self.lines[0].removeprefix(BYTE_ORDER_MARK)])])

    def find(self, lines: Sequence[str], level: int, start: int) -> int:
        """Return the first position of consecutive lines, compared at that level of `FOLDS`, or -1."""
        return self._search(level).find(lines, start)

    def occurs_again(self, lines: Sequence[str], level: int, at: int) -> bool:
        """Return whether the lines at a position occur again after it, compared at that level."""
        return self._search(level).occurs_again(lines, at)

    def is_at(self, lines: Sequence[str], level: int, at: int) -> bool:
        """Return whether lines are at a position, compared at that level."""
        return self._search(level).is_at(lines, at)

    def places(self, lines: Sequence[str], level: int, start: int, stop: int | None = None) -> Iterator[int]:
        """Yield the positions of consecutive lines, from `start` up to `stop`, compared at that level."""
        while isinstance(search := self._search(level), TextSearch):
            at = search.find(lines, start)
            if at < 0 or (stop is not None and at >= stop):
                return
            yield at
            start = at + 1
        for at in search.places(lines, start):
            if stop is not None and at >= stop:
                return
            yield at

    def expect_hunks(self, count: int) -> None:
        """Prepare for finding this many hunks, each with two searches: index the lines at once if that is faster."""
        if 2 * count > MOST_TEXT_SEARCHES:
            self._searches_left = 0

    def _search(self, level: int) -> LineIndex | TextSearch:
        if level or 0 in self._indexes:
            return self._index(level)
        if self._text_search is None:
            self._text_search = TextSearch(self.lines, self._text)
        self._searches_left -= 1
        return self._text_search if self._searches_left >= 0 else self._index(0)

    def _index(self, level: int) -> LineIndex:
        found = self._indexes.get(level)
        if found is None:
            base = self._index(0) if level else None
            found = self._indexes[level] = LineIndex(self.lines, FOLDS[level], base)
        return found

    def replace(self, runs: Sequence[Run]) -> None:
        """Replace runs of lines, which must be in order and not adjacent. O(lines), as fast as copying."""
        if runs:
            self._changes += 1
            self._text = self._text_search = None
            self.has_returns = self.has_returns or any("\r" in "".join(lines) for _, _, lines in runs)
            self.changed_once = runs if self._changes == 1 else None
            for index in self._indexes.values():
                index.replace(runs, self.lines)
            self.lines = spliced(self.lines, runs)
