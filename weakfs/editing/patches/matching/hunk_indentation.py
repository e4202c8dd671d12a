"""The indentation of the lines that a hunk adds if it matches only apart from indentation."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from weakfs.editing.doubtful_indentation import DoubtfulIndentation, NewLine, OldLine
from weakfs.editing.indentation_checks import check_indentation
from weakfs.editing.line_context import indent
from weakfs.editing.patches.document import Document
from weakfs.editing.patches.errors import quoted
from weakfs.editing.patches.line_search.equivalences import TRAILING_BLANKS
from weakfs.editing.patches.matching.hunk_error import Misfit
from weakfs.editing.patches.matching.placement import Place
from weakfs.editing.reindentation import Reindentation

# The number of lines before and after a hunk that are examined for the step of indentation there.
NEARBY = 100

WITH_INDENTATION = "its new lines were indented like the lines around them"


def reindented(document: Document, place: Place) -> Place:
    """Return a place with its new lines in the file's indentation. Raises `Misfit` if that is ambiguous."""
    if place.anchor is not None:
        return _below_anchor(document, place)
    if place.level <= TRAILING_BLANKS:
        return place
    lines = place.hunk.lines
    found = _reindentation(document, place)
    try:
        check_indentation(found)
        if found.is_verbatim and not found.hangs:
            return place
        made = [*_reindented(found, lines)]
    except DoubtfulIndentation as error:
        raise Misfit(error.reason, lines=error.lines, is_all=True) from error
    notes = place.notes if made == [*lines] else (*place.notes, WITH_INDENTATION)
    return evolve(place, hunk=evolve(place.hunk, lines=tuple(made)), notes=notes)


def _reindented(found: Reindentation, lines: tuple[str, ...]) -> Iterator[str]:
    number = 0
    for line in lines:
        text = line[1:].lstrip()
        if not text or line[0] == "-":
            yield line
            continue
        yield f"+{found.of(number)}{text}" if line[0] == "+" else line
        number += 1


def _reindentation(document: Document, place: Place) -> Reindentation:
    old: list[OldLine] = []
    new: list[NewLine] = []
    at, blanks = place.at, 0
    for line in place.hunk.lines:
        text = line[1:].strip()
        if text and line[0] != "+":
            old.append(OldLine(indent(line[1:]), text, indent(document.lines[at]), at + 1))
        if text and line[0] != "-":
            new.append(NewLine(indent(line[1:]), text, len(old) - 1 if line[0] == " " else None, blanks))
        if line[0] != "-":
            blanks = 0 if text else blanks + 1
        at += line[0] != "+"
    around = document.lines[max(0, place.at - NEARBY) : at + NEARBY]
    nearby = [indent(line) for line in around if line.strip()]
    return Reindentation(old, new, nearby, in_string=document.is_in_string(place.at), are_lines=True)


def _below_anchor(document: Document, place: Place) -> Place:
    """Indent lines added below an anchor that was given with an indentation other than that of its line."""
    assert place.anchor is not None
    anchor = indent(document.lines[place.anchor])
    texts = [line[1:] for line in place.hunk.lines if line[1:].strip()]
    named = indent(place.hunk.anchors[-1])
    if not texts or named == anchor:
        return place
    lines = document.lines
    below = next((lines[at] for at in range(place.at, len(lines)) if lines[at].strip()), "")
    opens = len(indent(below)) > len(anchor)
    wanted = indent(below) if opens else anchor
    given = indent(min(texts, key=lambda text: len(indent(text))))
    if given == wanted:
        return place
    # Indent as deeply below the anchor as in the hunk, if the lines below it in the file are equally deep.
    if given.startswith(named) and anchor + given[len(named) :] == wanted:
        hunk = evolve(place.hunk, lines=tuple(_shifted(line, given, wanted) for line in place.hunk.lines))
        return evolve(place, hunk=hunk, notes=(*place.notes, WITH_INDENTATION))
    raise Misfit(
        f"its anchor {quoted(place.hunk.anchors[-1])} has another indentation in the file, at line {place.anchor + 1}, "
        "so the indentation of the new lines is ambiguous; give the anchor and the new lines with the indentation "
        "of the file, or lines of context around them",
        lines=(place.anchor + 1,),
        is_all=True,
    )


def _shifted(line: str, given: str, wanted: str) -> str:
    return f"+{wanted}{line[1:].removeprefix(given)}" if line[1:].strip() else line
