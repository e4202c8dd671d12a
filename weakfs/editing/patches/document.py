"""A text file as lines, each with its own line ending, for edits that leave all other bytes unchanged."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from weakfs.editing.line_context import TRIPLE_QUOTES
from weakfs.editing.patches.line_search.equivalences import FOLDS
from weakfs.editing.patches.line_search.line_index import LineIndex, Run, spliced
from weakfs.editing.patches.line_search.text_search import TextPiece, TextSearch, text_of, text_pieces, with_pieces
from weakfs.editing.patches.operations import Hunk

BYTE_ORDER_MARK = "\ufeff"

# An index of all lines pays off after about this many searches of the text, as many as 20 hunks need.
MOST_TEXT_SEARCHES = 48


class Placed(Protocol):
    """A hunk and its place: the line (from 0) where it begins."""

    @property
    def at(self) -> int: ...
    @property
    def hunk(self) -> Hunk: ...


class Document:
    """The lines of a text, without their `\\n` but with the `\\r` before it.

    `ended` is true if the text ends with a newline, and `is_marked` if it starts with a byte order mark, which is then
    not part of the first line. If the text does not end with a newline, its last line gets the `\\r` of the line before
    it, so that another line can follow; `text` omits it, unless the text itself `ends_in_return`. If `has_returns` is
    false, there is no carriage return in any line. If lines were replaced by a single call, `pieces` are what it
    replaced in the text that was `given`, without its byte order mark. `update_before` are the hunks of the last
    update, and their places.

    The text is split when a line is first needed by itself: splitting takes a third of the time of a small patch, and
    lines that match exactly can be found and replaced in the text.
    """

    __slots__ = (
        "_indexes",
        "_lines",
        "_quoting",
        "_searches_left",
        "_text",
        "_text_search",
        "ended",
        "ends_in_return",
        "given",
        "has_returns",
        "is_changed",
        "is_marked",
        "pieces",
        "update_before",
    )

    def __init__(self, text: str) -> None:
        self.is_marked = text.startswith(BYTE_ORDER_MARK)
        self.has_returns = "\r" in text
        self.given = text = text.removeprefix(BYTE_ORDER_MARK)
        self.ended = text[-1:] in ("", "\n")
        self.ends_in_return = text.endswith("\r")
        if not self.ended:
            is_return_missing = not self.ends_in_return and text.endswith("\r\n", 0, text.rfind("\n") + 1)
            text += "\r\n" if is_return_missing else "\n"
        # The lines, with a line break after each, while this is known without joining them.
        self._text: str | None = text
        self._lines: list[str] | None = None
        self._indexes: dict[int, LineIndex] = {}
        # The number of the line of each triple quote, once it is known.
        self._quoting: list[int] | None = None
        self._text_search: TextSearch | None = None
        self._searches_left = MOST_TEXT_SEARCHES
        self.is_changed = False
        self.pieces: Iterable[TextPiece] | None = None
        self.update_before: Sequence[Placed] = ()

    @property
    def lines(self) -> list[str]:
        """The lines; not to be modified."""
        if self._lines is None:
            self._lines = self._whole().split("\n")
            self._lines.pop()
        return self._lines

    def _whole(self) -> str:
        """Return the lines with a line break after each."""
        return text_of(self._lines or ()) if self._text is None else self._text

    def text(self) -> str:
        """Return the text. O(text)."""
        text = self._whole()
        if not self.ended:
            text = text[:-1] if self.ends_in_return else text[:-1].removesuffix("\r")
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

    def is_in_string(self, at: int) -> bool:
        """Return whether an odd number of triple quotes precedes a line. O(text) the first time."""
        if self._quoting is None:
            counts = ((at, sum(map(line.count, TRIPLE_QUOTES))) for at, line in enumerate(self.lines))
            self._quoting = [at for at, count in counts for _ in range(count)]
        return bisect_left(self._quoting, at) % 2 == 1

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
            self._text_search = TextSearch(self._whole())
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
        if not runs:
            return
        self.has_returns = self.has_returns or any("\r" in "".join(lines) for _, _, lines in runs)
        pieces: Iterable[TextPiece] | None = None
        if self._lines is None and not self.has_returns:
            # In the text that is searched, a line has the same offset as in the text itself.
            search = self._text_search or TextSearch(self._whole())
            pieces = [(search.offset_of(start), search.offset_of(stop), text_of(lines)) for start, stop, lines in runs]
            self._text = with_pieces(self._whole(), pieces)
        else:
            if not self.is_changed:
                pieces = list(text_pieces(self.lines, runs))
            for index in self._indexes.values():
                index.replace(runs, self.lines)
            self._lines = spliced(self.lines, runs)
            self._text = None
        self.pieces = None if self.is_changed else pieces
        self.is_changed = True
        self._text_search = None
        self._quoting = None
