"""Replacement of one text by another: literal, and only if the intended place is unambiguous."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import islice
from typing import Literal

from attrs import evolve, field

from weakfs.class_decorators import frozen
from weakfs.editing.doubtful_indentation import DoubtfulIndentation
from weakfs.editing.hints.diagnosis import QuotedFile, Subject
from weakfs.editing.hints.refusals import (
    AmbiguousIndentation,
    AmbiguousTarget,
    EmptyOldString,
    NoChange,
    TargetNotFound,
)
from weakfs.editing.layout import Layout
from weakfs.editing.line_ends import only_kind, with_line_ends
from weakfs.editing.normalization import BYTE_ORDER_MARK, Haystack, Needle, TooRepetitive, plain
from weakfs.messages import a_type

# The range of a match, in characters of the old text, and its replacement.
Piece = tuple[int, int, str]
How = Literal["exact", "fuzzy"]

# Placeholders for a `\r\n` of which neither half may match; UTF-8 cannot encode these two, so no file contains them.
WHOLE = "\udffe\udfff"

# The maximum number of matches whose lines an error lists: listing all of them in 32 MiB of one letter would take a
# gigabyte.
MAX_LINES = 1000
# The maximum number of lines that a message for a model names.
MAX_LINES_NAMED = 20
# The maximum number of characters that the inexact edits of one call search: about ten seconds of work.
MOST_SEARCHED = 1 << 29


class InexactSearches:
    """The inexact searches of successive edits, each of which costs as much as folding the whole text."""

    def __init__(self) -> None:
        self._searched = 0

    def add(self, text_size: int) -> None:
        """Count a search of a text. Raises `TargetNotFound` if those before it have taken all the work that is allowed.

        A single search is always allowed.
        """
        if self._searched and self._searched + text_size > MOST_SEARCHED:
            raise TargetNotFound(
                "the text to replace is not in it exactly, and a search for an inexact match would take too long in so "
                "large a file with so many inexact ones before it; copy the text exactly, or make fewer edits in one "
                "call",
                matches=0,
            )
        self._searched += text_size


@frozen
class Replacement:
    """A text with its replacements: their number, and how the old text was matched.

    `overlooked` names the difference between a "fuzzy" match and the text that was searched for, "" if it is exact.
    """

    count: int
    how: How
    overlooked: str
    _find: Callable[[], Iterator[Piece]] = field(repr=False, eq=False)
    _make: Callable[[], str] = field(repr=False, eq=False)

    @cached_property
    def text(self) -> str:
        """The new text, computed on first access. O(text)."""
        return self._make()

    @property
    def pieces(self) -> Iterator[Piece]:
        """Yield `(start, stop, inserted)`, in characters of the old text, in order. O(text)."""
        return self._find()

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The `(start, stop)` of every match, in characters of the old text, in order. O(text)."""
        return tuple((start, stop) for start, stop, _ in self._find())


def replace(text: str, old: str, new: str, *, replace_all: bool = False) -> Replacement:
    """Replace `old` with `new` in `text`: the only match, or every one with `replace_all`, from left to right.

    An exact match takes precedence; one that begins or ends inside a `\\r\\n` does not count. If there is none, a match
    may differ in white space, line endings, quotes, dashes or Unicode form (see `weakfs.editing.normalization`), and
    the inserted text takes the indentation of the lines that were found. Matches do not overlap, and inserted text is
    not searched again. Inserted line endings are those of `text` if it has only one kind, and a byte order mark at its
    start stays there. Raises `EmptyOldString`, `NoChange`, `TargetNotFound`, `AmbiguousTarget` or
    `AmbiguousIndentation`, all of them `EditError`. O(text + old + new).
    """
    for given in (text, old, new):
        if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"cannot replace {given!r:.60}: it is {a_type(given)}; pass text")
    if not old:
        raise EmptyOldString("the text to replace is empty; give the exact text to change")
    if old == new:
        raise NoChange("the old and the new text are the same; give a new text that differs")
    searched, wanted = _with_whole_line_ends(text, old)
    first = searched.find(wanted)
    if first < 0:
        ends = only_kind(text)
        if ends is not None and old.strip() and only_kind(old) not in (None, "\r", ends):
            # A match that differs only in line endings is exact in all other respects.
            return _with_own_ends(text, with_line_ends(old, ends), new, replace_all)
        return _replace_equivalent(text, old, new, replace_all)
    several = searched.find(wanted, first + len(wanted)) >= 0
    count = searched.count(wanted) if several else 1
    if several and not replace_all:
        starts = (start for start, _, _ in _pieces(searched, wanted, "", ""))
        raise _ambiguous(text, starts, count)
    inserted = with_line_ends(new, only_kind(text)) if "\n" in new or "\r" in new else new
    if inserted == old:
        raise NoChange("only line ends would change, and those of the file are kept; give a new text that differs")
    at_first = _keeping_mark(text, old, inserted, first)
    if at_first == old and not several:
        raise NoChange("only the byte order mark would change, and that is kept; give a new text that differs")
    if several:
        pieces = partial(_pieces, searched, wanted, inserted, at_first)
        plainly = searched is text and at_first == inserted
        make = partial(text.replace, old, inserted) if plainly else partial(_pieced, text, pieces)
        return Replacement(count, "exact", "", pieces, make)
    only = partial(iter, ((first, first + len(old), at_first),))
    return Replacement(1, "exact", "", only, partial(_pieced, text, only))


def _with_own_ends(text: str, old: str, new: str, replace_all: bool) -> Replacement:
    """Replace a text after converting its line endings to those of the file."""
    if with_line_ends(new, only_kind(text)) == old:
        raise NoChange("only line ends would change, and those of the file are kept; give a new text that differs")
    found = replace(text, old, new, replace_all=replace_all)
    return found if found.how == "fuzzy" else evolve(found, how="fuzzy", overlooked="line ends")


def _with_whole_line_ends(text: str, old: str) -> tuple[str, str]:
    """Return both texts in forms of the same length in which no half of a `\\r\\n` matches.

    They differ from the given ones only if `old` may begin or end with such a half. O(text) then.
    """
    if not (old.startswith("\n") or old.endswith("\r")) or "\r\n" not in text:
        return text, old
    return text.replace("\r\n", WHOLE), old.replace("\r\n", WHOLE)


def _keeping_mark(text: str, old: str, new: str, first: int) -> str:
    """Return the replacement of the first match, which may contain or follow the file's byte order mark."""
    if first > 1 or not text.startswith(BYTE_ORDER_MARK):
        return new
    bare = new.removeprefix(BYTE_ORDER_MARK)
    return bare if first else BYTE_ORDER_MARK + bare


def _pieces(text: str, old: str, new: str, at_first: str) -> Iterator[Piece]:
    start = text.find(old)
    inserted = at_first
    while start >= 0:
        stop = start + len(old)
        yield start, stop, inserted
        start = text.find(old, stop)
        inserted = new


def _pieced(text: str, pieces: Callable[[], Iterable[Piece]]) -> str:
    parts: list[str] = []
    end = 0
    for start, stop, inserted in pieces():
        parts += (text[end:start], inserted)
        end = stop
    return "".join((*parts, text[end:]))


def _replace_equivalent(text: str, old: str, new: str, replace_all: bool) -> Replacement:
    haystack = Haystack(text)
    bare, at_mark = old, False
    if text.startswith(BYTE_ORDER_MARK):
        # The byte order mark is not searched, and it is kept whatever is inserted.
        bare, new = old.removeprefix(BYTE_ORDER_MARK), new.removeprefix(BYTE_ORDER_MARK)
        at_mark = bare != old
    needle = Needle.of(bare)
    find = partial(_at_mark if at_mark else Haystack.find_all, haystack, needle)
    try:
        count = sum(1 for _ in find())
        first = next(find(), None)
        # Another one may begin inside the only one.
        also = None if first is None or at_mark or count > 1 else haystack.overlapping(needle, first)
    except TooRepetitive:
        why = "it has too many near matches to check each; give more of the text around one of them"
        raise TargetNotFound(f"the text to replace is not in it: {why}", matches=0) from None
    if first is None:
        raise _missing(haystack, old, new)
    if not replace_all and not at_mark and (count > 1 or also is not None):
        places = find() if also is None else iter((first, also))
        starts = map(haystack.original, places)
        raise _ambiguous(text, starts, max(2, count), " with other white space, quotes or dashes")
    pieces = partial(_fitted, haystack, find, Layout(text, bare, new))
    try:
        # Fit every place now, so that a doubtful one is found before the text is computed.
        changes = sum(text[start:stop] != inserted for start, stop, inserted in pieces())
    except DoubtfulIndentation as error:
        raise AmbiguousIndentation(error.reason, lines=error.lines, matches=count) from error
    if not changes:
        raise _unchanged(bare, new)
    found = text[haystack.original(first) : haystack.original(first + len(needle.core))]
    return Replacement(count, "fuzzy", _overlooked(bare, found), pieces, partial(_pieced, text, pieces))


def _missing(haystack: Haystack, old: str, new: str) -> TargetNotFound:
    found = QuotedFile(haystack.text, haystack).diagnose(Subject(old, new))
    but = ";" if found.hint in (None, "similar") else ":"
    reason = f"the text to replace is not in it{but} {found.reason}"
    return TargetNotFound(reason, lines=found.lines, matches=0, hint=found.hint)


def _at_mark(haystack: Haystack, needle: Needle) -> Iterator[int]:
    """Yield the position of a needle if it is the first text after the byte order mark."""
    first = haystack.first(needle)
    if first is not None and not haystack.text[len(BYTE_ORDER_MARK) : haystack.original(first)].strip():
        yield first


def _fitted(haystack: Haystack, find: Callable[[], Iterator[int]], layout: Layout) -> Iterator[Piece]:
    for at in find():
        yield layout.fit(haystack.original, at)


def _unchanged(old: str, new: str) -> NoChange:
    if with_line_ends(old, "\n").strip() == with_line_ends(new, "\n").strip():
        return NoChange(
            "only white space around the text would change, which is not part of an inexact match; "
            "give the old text exactly, with the line ends of the file"
        )
    return NoChange("the file already has the text to insert; read it again and give a new text that differs")


def _overlooked(old: str, found: str) -> str:
    """Return how two equivalent texts differ."""
    if with_line_ends(old, "\n").strip() == with_line_ends(found, "\n"):
        return "line ends" if old.strip() != found else "white space around it"
    if old.split() == found.split():
        return "white space"
    return "quotes or dashes" if plain(old).split() == plain(found).split() else "Unicode forms"


def _ambiguous(text: str, starts: Iterable[int], count: int, but: str = "") -> AmbiguousTarget:
    lines: list[int] = []
    line, seen = 1, 0
    for start in islice(starts, MAX_LINES):
        line += text.count("\n", seen, start)
        seen = start
        lines.append(line)
    distinct = list(dict.fromkeys(lines))
    return AmbiguousTarget(
        f"the text to replace is in the file {count} times{but}, {_named(distinct, count - len(lines))}; "
        f"give more of the text around the intended place, or set replace_all to change all of them",
        lines=tuple(lines),
        matches=count,
    )


def _named(lines: list[int], uncounted: int) -> str:
    if len(lines) == 1 and not uncounted:
        return f"on line {lines[0]}"
    if len(lines) > MAX_LINES_NAMED or uncounted:
        return f"on lines {', '.join(map(str, lines[:MAX_LINES_NAMED]))} and more"
    return f"on lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"
