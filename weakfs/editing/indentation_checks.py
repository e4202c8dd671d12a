"""Refusals of a new text whose indentation is ambiguous: it contradicts that of the file, of the old text, or its own.

The old text was quoted with an indentation other than the file's. The new text is taken for one that was given in the
same way. If it seems to have the indentation of the file instead, the block of each new line is ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import gcd

from weakfs.editing.doubtful_indentation import (
    DoubtfulIndentation,
    NewLine,
    OldLine,
    contradiction,
    no_depth,
    quote,
    shared_depth,
    shared_steps,
)
from weakfs.editing.indentation import usual_unit
from weakfs.editing.reindentation import OPENING, Reindentation, width

# The end of a line that must be followed by a deeper one.
BLOCK_OPENER = re.compile(
    r"(?:async|case|class|def|elif|else|except|finally|for|if|match|try|while|with)\b[^#]*:\s*(?:#.*)?"
)
# A line that may be followed by deeper ones in some language, and the beginning of the line that ends these.
MAY_OPEN = re.compile(r"[:{(\[]$|^(?:[-*+]|\d{1,9}[.)])[ ]|^<[^/].*>$")
CLOSES = re.compile(r"[)}\]]|</|(?:end|fi|done|esac)\b")


def check_indentation(found: Reindentation) -> None:
    """Raise `DoubtfulIndentation` if the depth of a new line is ambiguous."""
    if found.is_verbatim:
        if found.hangs:
            _check_blocks(found)
        return
    by_depth = sorted(found.code, key=lambda line: (width(line.indent), width(line.actual or "")))
    for one, other in pairwise(by_depth):
        quoted = width(other.indent) - width(one.indent)
        actual = width(other.actual or "") - width(one.actual or "")
        if (quoted > 0) != (actual > 0) or (not quoted and (one.indent, one.actual) != (other.indent, other.actual)):
            raise contradiction(one, other)
    _check_whole(found)
    _check_steps(found)
    for start, stop in _added(found):
        _check_added(found, start, stop)
    _check_blocks(found)
    _check_order(found)


def _check_whole(found: Reindentation) -> None:
    """Raise `DoubtfulIndentation` if the new text, unlike the old one, seems to have the file's indentation."""
    if found.are_lines or found.hangs or not found.new:
        return
    shared = _kept_as_in_file(found) or _outermost_as_in_file(found)
    if shared is not None and _changes(found, 0, len(found.new)):
        raise shared_depth(*shared)


def _kept_as_in_file(found: Reindentation) -> tuple[NewLine, OldLine] | None:
    """Return a kept line that has the file's indentation in the new text only, if no line contradicts that."""
    pairs = [(line, found.old[line.kept]) for line in found.new if line.kept is not None]
    if any(old.actual not in (None, line.indent) for line, old in pairs):
        return None
    shared = next(((line, old) for line, old in pairs if old.actual is not None and old.indent != old.actual), None)
    outermost = min((width(line.actual or "") for line in found.evidence), default=0)
    step = gcd(*map(width, found.nearby)) or 1
    widths = [width(line.indent) for line in found.new if line.kept is None]
    return shared if all(own >= outermost and own % step == 0 for own in widths) else None


def _outermost_as_in_file(found: Reindentation) -> tuple[NewLine, OldLine] | None:
    """Return the outermost lines of both texts if only the new one is indented as in the file."""
    old = min(found.evidence, key=lambda line: width(line.indent), default=None)
    new = min(found.new, key=lambda line: width(line.indent))
    return (new, old) if old is not None and new.indent == old.actual != old.indent else None


def _check_steps(found: Reindentation) -> None:
    """Raise `DoubtfulIndentation` if the new text, unlike the old one, has the file's steps of indentation."""
    by_depth = sorted(found.code, key=lambda line: len(line.indent))
    old = gcd(*(width(other.indent) - width(one.indent) for one, other in pairwise(by_depth)))
    there = gcd(*(width(other.actual or "") - width(one.actual or "") for one, other in pairwise(by_depth)))
    if old == there or _repeats_old(found) or not _changes(found, 0, len(found.new)):
        return
    unit = usual_unit(found.nearby)
    for needed in (2, 1):
        # Lines that are new below new ones show the steps best, and if there are none, one of the two is enough.
        deeper = [pair for pair in found.deeper if sum(_is_put_in(found, at) for at in pair) >= needed]
        step = gcd(*(width(found.new[at].indent) - width(found.new[parent].indent) for parent, at in deeper))
        if step and unit == " " * step:
            raise shared_steps(found.new[deeper[0][1]], step, old)


def _repeats_old(found: Reindentation) -> bool:
    """Return whether the new text has kept lines, with their parents, as they were quoted and not as in the file."""
    if found.are_lines:
        return False
    for parent, at in found.deeper:
        kept = found.new[at].kept
        if kept is None or _is_put_in(found, at) or _is_put_in(found, parent):
            continue
        if found.old_parents[kept] != found.new[parent].kept:
            continue
        if found.old[kept].actual not in (None, found.old[kept].indent):
            return True
    return False


def _is_put_in(found: Reindentation, number: int) -> bool:
    """Return whether the old text has no such line, or has it with another indentation."""
    line = found.new[number]
    return line.kept is None or line.indent != found.old[line.kept].indent


def _added(found: Reindentation) -> Iterator[tuple[int, int]]:
    """Yield the start and stop of each run of lines that were not kept."""
    start = 0
    for number, line in enumerate(found.new):
        if line.kept is not None:
            if start < number:
                yield start, number
            start = number + 1
    if start < len(found.new):
        yield start, len(found.new)


def _check_added(found: Reindentation, start: int, stop: int) -> None:
    """Raise `DoubtfulIndentation` for added lines that seem to have the file's indentation, unlike those around."""
    first = found.new[start]
    removed = found.old[slice(*found.replaced[start])]
    old = removed[0] if removed else _line_above(found, start)
    if old is None or not old.actual == first.indent != old.indent or not _changes(found, start, stop):
        return
    if removed:
        run = [(line.indent, line.text) for line in found.new[start:stop]]
        is_same = run == [(line.actual, line.text) for line in removed]
        if is_same or any(line.indent == first.indent for line in removed):
            return
    raise shared_depth(first, old)


def _line_above(found: Reindentation, number: int) -> OldLine | None:
    """Return the old line above an added one if the two must be in the same block, because the old line opens none."""
    kept = found.new[number - 1].kept if number else None
    if kept is None or (found.hangs and not kept):
        return None
    old, line = found.old[kept], found.new[number]
    if MAY_OPEN.search(old.text) or found.new[number - 1].indent != old.indent:
        return None
    below = next(iter(found.old[kept + 1 : kept + 2]), None)
    is_beside = below is not None and below.actual == old.actual
    if len(line.indent) > len(old.indent):
        opens = below is not None and (width(below.actual or "") > width(old.actual or "") or _ends(below, is_beside))
        return None if opens else old
    return old if is_beside and not line.text.endswith(OPENING) else None


def _ends(below: OldLine, is_beside: bool) -> bool:
    return is_beside and CLOSES.match(below.text) is not None


def _changes(found: Reindentation, start: int, stop: int) -> bool:
    """Return whether a new line gets another indentation than the given one, which a first line may lack."""
    numbers = range(max(start, int(found.hangs)), stop)
    # The lines of context of a hunk are not written.
    return any(
        found.new[at].indent != found.of(at) for at in numbers if not found.are_lines or found.new[at].kept is None
    )


def _check_blocks(found: Reindentation) -> None:
    """Raise `DoubtfulIndentation` if the new text is not indented as its own lines require."""
    for one, other in pairwise(found.new):
        if one.kept is not None and other.kept is not None:
            continue
        # Text that was moved to the left margin as a whole loses the depth of its first step.
        is_opened = BLOCK_OPENER.fullmatch(one.text) or (one.text.endswith("{") and other.text[0] not in "{}#")
        if is_opened and not other.indent:
            raise DoubtfulIndentation(
                f"{quote(one.text)} opens a block, but {quote(other.text)} below it is not indented deeper; give "
                "all lines, old and new, with the indentation of the file",
                _lines(found.old),
            )
    for line in found.new:
        is_apart = line.kept is None and line.blanks > 1 and not line.indent
        if is_apart and width(found.indents.of(line.indent)) > width(line.indent):
            raise DoubtfulIndentation(
                f"{quote(line.text)} follows {line.blanks} blank lines and has no indentation, but "
                "the lines around it are deeper in the file than in the text that was given; give all "
                "lines, old and new, with the indentation of the file",
                _lines(found.old),
            )


def _lines(old: Sequence[OldLine]) -> tuple[int, ...]:
    return (old[0].number,) if old else ()


def _check_order(found: Reindentation) -> None:
    """Raise `DoubtfulIndentation` for a new line that is deeper than an old one as given, but would not be here.

    The same holds for a shallower one: the file has no depth for it.
    """
    known = {(line.indent, line.actual or ""): line for line in reversed(found.code)}
    seen: set[tuple[str, str]] = set()
    for number, line in enumerate(found.new):
        if line.kept is not None or not found.is_code(number) or not (number or found.are_lines):
            continue
        given, made = found.moved + line.indent, found.of(number)
        for (quoted, actual), old in known.items() if (given, made) not in seen else ():
            is_deeper, is_shallower = len(given) > len(quoted), len(given) < len(quoted)
            if not (given.startswith(quoted) if is_deeper else quoted.startswith(given)):
                continue
            if (is_deeper, is_shallower) != (width(made) > width(actual), width(made) < width(actual)):
                raise no_depth(line, given, old)
        seen.add((given, made))
