"""Ambiguous calls: those that another plausible edit, with the same or another mistake, would produce as well.

Every mistake that turns the lines of the file into those of the call is undone for the lines that the call inserts.
A call is ambiguous if this yields several plausible texts; a text in Python is plausible only if it parses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice, product
from warnings import catch_warnings, simplefilter

from benchmarks.edits.blocks import WITH_BRACES, Block, Line
from benchmarks.edits.corpus import Source, indent_of
from benchmarks.edits.mistakes import EXACT, FIRST, Mistake, clipped, further_in, further_out, of_indentation

MOST_READINGS = 64
DEEPEST = 12


def is_decidable(block: Block, quoted: Sequence[Line], mistake: Mistake, *, is_marked: bool = False) -> bool:
    """Return whether the edit of a block is the only plausible one that the quoted lines may stand for.

    `is_marked` is true if the call marks which lines are removed and added, as a patch does.
    """
    free = ambiguous_lines(block, quoted)
    if not is_marked:
        movable = movable_lines(block, quoted)
        if movable is None:
            return False
        free |= movable
    block = replace(block, lines=_freed(block.lines, free))
    quoted = _freed(quoted, free)
    truth = _indents(line.text for line in block.lines if line.inserted)
    others = set(islice(_readings(block, quoted, mistake), MOST_READINGS + 1)) - {truth}
    if not others:
        return True
    if len(others) >= MOST_READINGS:
        return False
    filters = [_is_laid_out, _parses] if block.source.language == "python" else [_is_laid_out]
    # A filter that the true edit itself does not pass is ignored.
    telling = [passes for passes in filters if passes(block, truth)]
    return not any(all(passes(block, other) for passes in telling) for other in others)


def ambiguous_lines(block: Block, quoted: Sequence[Line]) -> set[int]:
    """Return the changed lines that may replace removed ones with different indentations.

    This happens if a run of changes does not replace lines one for one, and those indentations are equal in the call.
    """
    found: set[int] = set()
    for run in _runs(block.lines):
        removed = [number for number in run if block.lines[number].mark == "-"]
        added = [number for number in run if block.lines[number].mark == "+"]
        meant: dict[str, set[str]] = {}
        for number in removed:
            meant.setdefault(indent_of(quoted[number].text), set()).add(indent_of(block.lines[number].text))
        if len(removed) != len(added):
            found |= {number for number in added if len(meant.get(indent_of(quoted[number].text), ())) > 1}
    return found


def movable_lines(block: Block, quoted: Sequence[Line]) -> set[int] | None:
    """Return the kept lines that another diff of the quoted texts may call added.

    `None` if a diff that keeps as many lines produces another text, as when one of two equal quoted lines is removed
    and they are not equal in the file.
    """
    old = [number for number, line in enumerate(quoted) if line.mark != "+"]
    new = [number for number, line in enumerate(quoted) if line.mark != "-"]
    before, after = [quoted[number].text for number in old], [quoted[number].text for number in new]
    above = _kept_counts(before, after)
    below = [row[::-1] for row in _kept_counts(before[::-1], after[::-1])[::-1]]
    most = above[-1][-1]
    movable: set[int] = set()
    for j, number in enumerate(new):
        partners = [
            i for i, text in enumerate(before) if text == after[j] and above[i][j] + 1 + below[i + 1][j + 1] == most
        ]
        if any(block.lines[old[i]].text != block.lines[number].text for i in partners):
            return None
        if any(above[i][j] + below[i][j + 1] == most for i in range(len(old) + 1)):
            movable.add(number)
    return movable


def _kept_counts(before: Sequence[str], after: Sequence[str]) -> list[list[int]]:
    """Return the maximum number of lines that a diff keeps, for each pair of prefixes."""
    rows = [[0] * (len(after) + 1)]
    for one in before:
        row = [0]
        for j, other in enumerate(after):
            row.append(rows[-1][j] + 1 if one == other else max(rows[-1][j + 1], row[j]))
        rows.append(row)
    return rows


def _runs(lines: Sequence[Line]) -> Iterator[list[int]]:
    """Yield the numbers of the lines of each change."""
    for changed, run in groupby(range(len(lines)), lambda number: lines[number].mark != " "):
        if changed:
            yield list(run)


def _freed(lines: Sequence[Line], free: set[int]) -> tuple[Line, ...]:
    """Return the lines, some of them as if they were inserted."""
    return tuple(replace(line, inserted=line.inserted or number in free) for number, line in enumerate(lines))


def _indents(lines: Iterator[str]) -> tuple[str, ...]:
    return tuple(indent_of(line) for line in lines if line.strip())


def _readings(block: Block, quoted: Sequence[Line], made: Mistake) -> Iterator[tuple[str, ...]]:
    """Yield the indentations that may be intended for the inserted lines."""
    known = _known_indents(block.source)
    pairs = [(line, other) for line, other in zip(block.lines, quoted, strict=True) if line.text.strip()]
    for mistake in (made, EXACT, FIRST, clipped(block.source.unit), *_shift(pairs), *of_indentation(block.source.unit)):
        again = mistake.quote(block.lines)
        if again is None or any(
            one.text.strip() and indent_of(one.text) != indent_of(other.text)
            for one, other in zip(again, quoted, strict=True)
            if not one.inserted
        ):
            continue
        undone = {given: [one for one in known if mistake.indent(one) == given] for given in _given(quoted)}
        yield from product(*(undone[indent_of(other.text)] for line, other in pairs if line.inserted))


def _given(quoted: Sequence[Line]) -> set[str]:
    return {indent_of(line.text) for line in quoted if line.inserted and line.text.strip()}


def _shift(pairs: Sequence[tuple[Line, Line]]) -> Iterator[Mistake]:
    """Yield the mistake of moving all lines as far as the first one was moved."""
    here, there = indent_of(pairs[0][0].text), indent_of(pairs[0][1].text)
    if here.startswith(there):
        yield Mistake("moved out", partial(further_out, here[len(there) :]))
    elif there.startswith(here):
        yield Mistake("moved in", partial(further_in, there[len(here) :]))


def _known_indents(source: Source) -> list[str]:
    steps = {source.unit * depth for depth in range(DEEPEST)}
    return sorted({*source.indents, *steps, *(indent + source.unit for indent in source.indents)})


def _texts(block: Block, indents: Sequence[str]) -> Iterator[tuple[bool, str]]:
    """Yield the new lines of a block with other indentations for the inserted ones."""
    following = iter(indents)
    for line in block.lines:
        if line.mark == "-":
            continue
        moved = line.inserted and line.text.strip()
        yield line.inserted, next(following) + line.text.lstrip(" \t") if moved else line.text


def _is_laid_out(block: Block, indents: Sequence[str]) -> bool:
    """Return whether the depth of each inserted line fits the line above it.

    It may be at most a step deeper, and must be deeper if the line above opens a block.
    """
    unit = block.source.unit
    strict = block.source.language in {"python", "css", *WITH_BRACES}
    above = next((line for line in reversed(block.source.lines[: block.start]) if line.strip()), "")
    for inserted, text in _texts(block, indents):
        if not text.strip():
            continue
        if inserted:
            deeper = len(indent_of(text)) - len(indent_of(above))
            opened = above.rstrip().endswith((":", "{", "(", "["))
            if deeper > len(unit) or (strict and opened != (deeper > 0)):
                return False
        above = text
    return True


def _parses(block: Block, indents: Sequence[str]) -> bool:
    lines = block.source.lines
    new = (text for _, text in _texts(block, indents))
    text = "\n".join((*lines[: block.start], *new, *lines[block.stop :]))
    with catch_warnings():
        simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return False
    return True
