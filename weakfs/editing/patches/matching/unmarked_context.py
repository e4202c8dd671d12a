"""Context lines without their mark: if they are indented, their first blank is taken for it."""

from __future__ import annotations

from weakfs.editing.patches.document import Document
from weakfs.editing.patches.matching.equivalences import LEVELS
from weakfs.editing.patches.operations import Hunk

_TRAILING_BLANKS = LEVELS.index("trailing blanks")


def unmarked_lines(document: Document, hunk: Hunk, at: int) -> list[int]:
    """Return the context lines (from 0) of a hunk at a place that the file has there including their mark."""
    found: list[int] = []
    for number, line in enumerate(hunk.lines):
        if line[0] == " " and document.is_at([line], _TRAILING_BLANKS, at):
            found.append(number)
        at += line[0] != "+"
    return found


def is_dedented(document: Document, hunk: Hunk, at: int) -> bool:
    """Return whether a hunk at a place was given one blank too little in all its lines, not only in its context.

    Removed lines show it. Without any, it is so if no new line has the indentation of an old line in the file, and
    the outermost of them would have it with one more blank.
    """
    there = document.lines[at : at + len(hunk.old)]
    quoted = [line for line in hunk.lines if line[0] != "+"]
    removed = [(line[1:], held) for line, held in zip(quoted, there, strict=True) if line[0] == "-" and held.strip()]
    if removed:
        return any(_indentation(line) != _indentation(held) for line, held in removed)
    old = {_indentation(line) for line in there if line.strip()}
    new = {_indentation(line[1:]) for line in hunk.lines if line[0] == "+" and line[1:].strip()}
    return bool(new) and new.isdisjoint(old) and f" {min(new, key=len)}" in old


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
