"""Telling why a hunk does not fit: the nearest place, and the first line there that differs."""

from __future__ import annotations

from collections import Counter
from difflib import get_close_matches

from weakfs.editing.patches.document import Document
from weakfs.editing.patches.equivalences import LEVELS
from weakfs.editing.patches.errors import QUOTED, quoted
from weakfs.editing.patches.misfit import MAX_PLACES, Misfit
from weakfs.editing.patches.operations import Hunk

# How many lines of a hunk are looked up, and how many places of each.
LOOKED_UP = 60
PLACES_OF_EACH = 20

# A line that is nowhere is compared with so many, at most 160 characters of each.
MOST_COMPARED = 1000

# Lines are compared as freely as anywhere when the nearest place is looked for.
FREEST = len(LEVELS) - 1
# An edit that is done already is one without what the freest comparison passes over.
TRIMMED = LEVELS.index("indentation")


def explain(document: Document, hunk: Hunk, misfit: Misfit, cursor: int) -> tuple[str, tuple[int, ...]]:
    """Say why a hunk has no place, and give the lines of the file (from 1) that this names."""
    if misfit.places:
        named = ", ".join(map(str, misfit.places[:MAX_PLACES])) + (
            " and further ones" if len(misfit.places) > MAX_PLACES else ""
        )
        why = misfit.reason or "it fits in several places"
        return (
            f"{why}, at lines {named}; add more lines of context, {_remedy(hunk)}",
            misfit.places[:MAX_PLACES],
        )
    if misfit.is_all:
        return misfit.reason, misfit.lines
    if not hunk.old:
        return f"{misfit.reason}; name lines of the file, each below the one before it", ()
    told, lines = _nearest(document, hunk, misfit, cursor)
    why = f"{misfit.reason}; " if misfit.reason else ""
    return f"{why}{told}", lines


def _remedy(hunk: Hunk) -> str:
    if hunk.start is not None:
        return "or correct the line numbers in the hunk's header"
    return "or an '@@ ' line that stands above the right place"


def _nearest(document: Document, hunk: Hunk, misfit: Misfit, cursor: int) -> tuple[str, tuple[int, ...]]:
    old = hunk.old
    at = _first_place(document, old, cursor)
    if 0 <= at < cursor:
        return f"it fits at line {at + 1}, above the place of the hunk before it; put hunks in the order of the file", (
            at + 1,
        )
    if at >= 0:
        return f"its lines are at line {at + 1}, which is not where the hunk must be; read the file again", (at + 1,)
    place = _best_place(document, old, cursor)
    told, lines = _nothing_there(document, old, cursor) if place is None else _first_difference(document, old, place)
    done = _already(document, hunk)
    if done is not None:
        told += f"; its new lines are there already, at line {done + 1}: leave the hunk out if it is applied"
        lines = (*lines, done + 1)
    return told, lines


def _first_place(document: Document, old: list[str], cursor: int) -> int:
    """Find where the lines stand, below the cursor if anywhere; -1 for nowhere."""
    at = document.find(old, FREEST, cursor)
    return at if at >= 0 else document.find(old, FREEST, 0)


def _already(document: Document, hunk: Hunk) -> int | None:
    new = hunk.new
    if not any(line.strip() for line in new) or all(line[0] == " " for line in hunk.lines):
        return None
    at = document.find(new, TRIMMED, 0)
    return at if at >= 0 else None


def _best_place(document: Document, old: list[str], cursor: int) -> int | None:
    """Find where most of the lines stand as the hunk has them; `None` where none of them is anywhere."""
    votes: Counter[int] = Counter()
    for offset, line in enumerate(old[:LOOKED_UP]):
        if not line.strip():
            continue
        at = document.find([line], FREEST, 0)
        for _ in range(PLACES_OF_EACH):
            if at < 0:
                break
            votes[at - offset] += 1
            at = document.find([line], FREEST, at + 1)
    if not votes:
        return None
    return min(votes, key=lambda place: (-votes[place], place < cursor, abs(place - cursor)))


def _first_difference(document: Document, old: list[str], place: int) -> tuple[str, tuple[int, ...]]:
    for offset, line in enumerate(old):
        at = place + offset
        if at < 0 or not document.is_at([line], FREEST, at):
            number = max(at, 0) + 1
            if not 0 <= at < len(document.lines):
                held = "the file has no such line"
            else:
                held = f"the file has {quoted(document.lines[at].removesuffix(chr(13)))}"
            return (
                f"the nearest place is at line {max(place, 0) + 1}, and line {number} differs there: "
                f"the hunk has {quoted(line)}, {held}",
                (max(place, 0) + 1, number),
            )
    return f"the nearest place is at line {place + 1}", (place + 1,)


def _nothing_there(document: Document, old: list[str], cursor: int) -> tuple[str, tuple[int, ...]]:
    """Say that no line of a hunk is in the file, and which line comes nearest to its first one."""
    first = next((line for line in old if line.strip()), "")
    told = f"none of its lines is in the file; the first is {quoted(first)}"
    start = max(cursor - MOST_COMPARED // 2, 0)
    lines = [line.strip()[:QUOTED] for line in document.lines[start : start + MOST_COMPARED]]
    near = get_close_matches(first.strip()[:QUOTED], lines, n=1)
    if not near:
        return f"{told}. Read the file again", ()
    at = start + lines.index(near[0])
    return f"{told}, and line {at + 1} comes nearest: {quoted(document.lines[at].removesuffix(chr(13)))}", (at + 1,)
