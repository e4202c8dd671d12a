"""Replacing one text by another: exactly, literally, and only where there is no doubt which place is meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import ClassVar, Literal

from attrs import field, frozen

# Where a match was, in characters of the old text, and what was put there.
Piece = tuple[int, int, str]
How = Literal["exact"]

BYTE_ORDER_MARK = "\ufeff"

# An error names the lines of this many matches: all of them in 32 MiB of one letter would be a gigabyte.
MAX_LINES = 1000
# And a message, which a model reads, those of this many.
MAX_LINES_TOLD = 20


class EditError(ValueError):
    """A replacement that was refused; nothing was changed.

    `status` and `error_code` are what a receipt says, `reason` the message without its first words, `lines`
    the line (from 1) of each match, at most the first 1,000, and `matches` how many there are (`None` where
    nobody looked).
    """

    status: ClassVar[str] = "error"
    error_code: ClassVar[str]

    def __init__(self, reason: str, *, lines: tuple[int, ...] = (), matches: int | None = None) -> None:
        self.reason = reason
        self.lines = lines
        self.matches = matches
        super().__init__(f"cannot replace: {reason}")


class EmptyOldString(EditError):
    """There is nothing to look for."""

    error_code = "invalid_input_empty_old_string"


class NoChange(EditError):
    """The new text is the old one."""

    error_code = "invalid_input_no_change"


class TargetNotFound(EditError):
    """The old text is not there."""

    status = "not_found"
    error_code = "edit_target_not_found"


class AmbiguousTarget(EditError):
    """The old text is there several times, and one place was asked for."""

    status = "ambiguous"
    error_code = "ambiguous_matches"


@frozen
class Replacement:
    """A text with its replacements made: how many, and how the old text was matched."""

    text: str = field(repr=False)
    count: int
    how: How
    _find: Callable[[], Iterator[Piece]] = field(repr=False, eq=False)

    @property
    def pieces(self) -> Iterator[Piece]:
        """Go through `(start, stop, inserted)`, in characters of the old text, in order. O(text)."""
        return self._find()

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """The `(start, stop)` of every match, in characters of the old text, in order. O(text)."""
        return tuple((start, stop) for start, stop, _ in self._find())


def replace(text: str, old: str, new: str, *, replace_all: bool = False) -> Replacement:
    """Replace `old` by `new` in `text`: the only match, or with `replace_all` every one, left to right.

    Matches do not overlap, and what was put in is not searched again. A byte order mark at the start of
    `text` stays there. Raises `EmptyOldString`, `NoChange`, `TargetNotFound` or `AmbiguousTarget`, all of
    them `EditError`. O(text).
    """
    if not old:
        raise EmptyOldString("the text to replace is empty; give the exact text that is to change")
    if old == new:
        raise NoChange("the old and the new text are the same; give a new text that differs")
    count = text.count(old)
    if count == 0:
        raise TargetNotFound(
            "the text to replace is not in it; read it again and copy the text exactly, with its white space",
            matches=0,
        )
    if count > 1 and not replace_all:
        raise _ambiguous(text, old, count)
    first = _first(text, old, new)
    changed = text.replace(old, new) if first == new else first + text[len(old) :].replace(old, new)
    if changed == text:
        raise NoChange("nothing but the byte order mark would go, and that stays; give a new text that differs")
    return Replacement(changed, count, "exact", partial(_pieces, text, old, new))


def _first(text: str, old: str, new: str) -> str:
    """Give what takes the place of the first match, which may hold the file's byte order mark."""
    if old.startswith(BYTE_ORDER_MARK) and text.startswith(old):
        return BYTE_ORDER_MARK + new.removeprefix(BYTE_ORDER_MARK)
    return new


def _pieces(text: str, old: str, new: str) -> Iterator[Piece]:
    inserted = _first(text, old, new)
    start = text.find(old)
    while start >= 0:
        stop = start + len(old)
        yield start, stop, inserted
        inserted = new
        start = text.find(old, stop)


def _ambiguous(text: str, old: str, count: int) -> AmbiguousTarget:
    lines: list[int] = []
    line, seen = 1, 0
    for start, _, _ in islice(_pieces(text, old, old), MAX_LINES):
        line += text.count("\n", seen, start)
        seen = start
        lines.append(line)
    told = list(dict.fromkeys(lines))
    return AmbiguousTarget(
        f"the text to replace is in it {count} times, {_named(told, count - len(lines))}; "
        f"give more of the text around the place that is meant, or set replace_all to change all of them",
        lines=tuple(lines),
        matches=count,
    )


def _named(lines: list[int], uncounted: int) -> str:
    if len(lines) == 1 and not uncounted:
        return f"on line {lines[0]}"
    if len(lines) > MAX_LINES_TOLD or uncounted:
        return f"on lines {', '.join(map(str, lines[:MAX_LINES_TOLD]))} and further ones"
    return f"on lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"
