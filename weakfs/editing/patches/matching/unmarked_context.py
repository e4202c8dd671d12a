"""Context lines without their mark: if they are indented, their first blank counts as the mark."""

from __future__ import annotations

from weakfs.editing.line_context import indent
from weakfs.editing.patches.document import Document
from weakfs.editing.patches.line_search.equivalences import TRAILING_BLANKS
from weakfs.editing.patches.operations import Hunk

# The number of lines before and after a hunk whose indentation is considered.
NEARBY = 100


def unmarked_lines(document: Document, hunk: Hunk, at: int) -> list[int]:
    """Return the context lines (from 0) of a hunk that, at this place, the file has together with their marks."""
    found: list[int] = []
    for number, line in enumerate(hunk.lines):
        if line[0] == " " and document.is_at([line], TRAILING_BLANKS, at):
            found.append(number)
        at += line[0] != "+"
    return found


def is_dedented(document: Document, hunk: Hunk, at: int) -> bool:
    """Return whether a hunk at a place was given with one blank too few in all its lines, not only in its context.

    Indented lines that it removes show this. Without any, this is assumed if no new line has the indentation of an old
    line in the file, and the outermost of them would have it with one more blank; the lines around the hunk decide if
    neither is the case.
    """
    stop = at + len(hunk.old)
    there = document.lines[at:stop]
    quoted = [line for line in hunk.lines if line[0] != "+"]
    removed = [
        (indent(line[1:]), indent(held))
        for line, held in zip(quoted, there, strict=True)
        if line[0] == "-" and held[:1].isspace() and held.strip()
    ]
    if removed:
        return any(given != held for given, held in removed)
    new = {indent(line[1:]) for line in hunk.lines if line[0] == "+" and line[1:].strip()}
    if not new:
        return False
    for lines in (there, document.lines[max(0, at - NEARBY) : stop + NEARBY]):
        old = {indent(line) for line in lines if line.strip()}
        if not new.isdisjoint(old):
            return False
        if f" {min(new, key=len)}" in old:
            return True
    return False
