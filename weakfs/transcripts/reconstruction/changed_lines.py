"""The parts of a file that the record of a change shows: its hunks at their lines, and the context of its patch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.transcripts.reconstruction.recorded_hunks import Hunk

# The placeholder for lines that are not shown.
_NOT_SHOWN = "\ue000\n"
# The maximum number of placeholder lines in one text.
_MOST_LINES = 100_000


@frozen
class Skeleton:
    """A text in which only some lines are real; `is_gapless` is true if all lines up to the last real one are."""

    text: str = field(repr=False)
    is_gapless: bool


def skeleton_of(hunks: Sequence[Hunk] | None, contexts: Iterable[Sequence[str]] = ()) -> Skeleton | None:
    """Return what hunks and `contexts`, the lines around them, show of the old text; `None` if they do not fit."""
    shown: dict[int, str] = {}
    for hunk in hunks or ():
        if hunk.start + len(hunk.old) > _MOST_LINES or not _place(shown, hunk.old, max(hunk.start, 1)):
            return None
    for context in contexts:
        _place_around(shown, [line + "\n" for line in context], hunks or ())
    if not shown:
        return None
    last = max(shown)
    lines = [shown.get(number, _NOT_SHOWN) for number in range(1, last + 1)]
    return Skeleton("".join(lines), len(shown) == last)


def _place(shown: dict[int, str], lines: Sequence[str], start: int) -> bool:
    if start < 1 or any(shown.get(number, line) != line for number, line in enumerate(lines, start)):
        return False
    shown.update(enumerate(lines, start))
    return True


def _place_around(shown: dict[int, str], lines: Sequence[str], hunks: Sequence[Hunk]) -> None:
    """Place lines by the first line of a hunk that occurs among them."""
    for hunk in hunks:
        if hunk.old and hunk.old[0] in lines and _place(shown, lines, hunk.start - lines.index(hunk.old[0])):
            return
