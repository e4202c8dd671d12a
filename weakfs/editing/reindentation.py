"""The indentation of inserted lines if the lines around them were quoted with an indentation other than the file's.

Edits and patches of every format use this. The mapping from the quoted indentation to the file's is learned from the
lines that both have. If these lines contradict one another, the block of a new line is ambiguous, and the edit is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
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
)
from weakfs.editing.indentation import Indents, Pair, given_step, learn
from weakfs.editing.line_context import LineContext, contexts, opened_at

OPENING = (":", "{", "(", "[")
# A line whose indentation is not significant: a comment, or a preprocessor directive.
COMMENT = re.compile(r"#|//|/\*|\*|--|<!--|;|%")
# Text after a list marker is indented by the width of the marker.
LIST_MARK = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ ]+")
# The end of a line that must be followed by a deeper one.
BLOCK_OPENER = re.compile(
    r"(?:async|case|class|def|elif|else|except|finally|for|if|match|try|while|with)\b[^#]*:\s*(?:#.*)?"
)
TAB = 8


class Reindentation:
    """The indentation of each line of a new text at one place of a file.

    `nearby` are indentations of lines around that place. `in_string` is true if a multi-line string was opened above
    it, `are_lines` if the quote has whole lines. Raise `DoubtfulIndentation` if the lines common to both texts
    contradict one another.
    """

    def __init__(
        self,
        old: Sequence[OldLine],
        new: Sequence[NewLine],
        nearby: Sequence[str],
        *,
        in_string: bool = False,
        are_lines: bool = False,
    ) -> None:
        self.old = old
        self.new = new
        self.nearby = nearby
        self.starts_in_string = in_string
        self.are_lines = are_lines
        self._indents: dict[int, str] = {}

    @cached_property
    def hangs(self) -> bool:
        """Whether the quoted text begins after its first line's indentation, while the other lines have theirs."""
        if not self.old or self.old[0].indent or not self.old[0].actual:
            return False
        # A whole line of brackets is known only by its indentation.
        if self.are_lines and not any(map(str.isalnum, self.old[0].text)):
            return False
        first = self.old[0].actual
        others = [(line.indent, line.actual) for line in self.old[1:] if line.actual is not None]
        if not others:
            return self.new_hangs(first)
        given, there = min(others, key=lambda pair: len(pair[0]))
        if given == there:
            return True
        if not there.startswith(first):
            return True
        # The steps show the width of a tab: a step of more than four means that the first line's tabs count too.
        deeper = len(there) - len(first)
        return there.startswith("\t") and not given.startswith("\t") and len(given) > 4 * deeper

    def new_hangs(self, first: str) -> bool:
        """Decide by the new text alone: no line is shallower than the first one, whose indentation is `first`."""
        inner = [line.indent for line in self.new[1:]]
        if not inner or any(len(indent) < len(first) or indent[:1] != first[:1] for indent in inner):
            return False
        # A block is deeper than the line that opens it.
        return len(inner[0]) > len(first) or not self.new[0].text.endswith(OPENING)

    @cached_property
    def moved(self) -> str:
        """The indentation that the whole new text lacks compared with the old one, although its block is the same."""
        moved = self.old[0].indent if self.old else ""
        # If the quote has the file's own indentation, that of the new lines is intended.
        if self.is_verbatim:
            return ""
        if not moved or not self.new or self.new[0].indent or self.new_hangs(moved):
            return ""
        return moved

    @cached_property
    def evidence(self) -> tuple[OldLine, ...]:
        """The lines whose indentation is known both as quoted and in the file."""
        return tuple(line for at, line in enumerate(self.old) if line.actual is not None and (at or not self.hangs))

    @cached_property
    def is_verbatim(self) -> bool:
        """Whether the lines were quoted with the indentation of the file."""
        return all(line.indent == line.actual for line in self.evidence)

    @cached_property
    def indents(self) -> Indents:
        """The mapping from the indentations of the quoted text to those of the file."""
        pairs = [_pair(line) for line in self.evidence]
        if self.is_verbatim:
            return Indents(tuple(pairs[:1]))
        # The first pair for a quoted indentation counts, so code wins over lines with insignificant indentation. A
        # quoted indentation with two counterparts does not show the width of a step.
        known = dict(reversed([*map(_pair, self._code), *pairs]))
        several = {given for given, there in pairs if known[given] != there}
        clear = [pair for pair in known.items() if pair[0] not in several]
        shifts = {len(there) - len(given) for given, there in clear if set(given + there) <= {" "}}
        if len(clear) > 1 and len(shifts) == 1 and not any("\t" in given + there for given, there in clear):
            # The block as a whole has a depth other than the quoted one; its steps are those of the file.
            return Indents(tuple(sorted(clear, key=lambda pair: len(pair[0]))))
        return learn(clear or [*known.items()], self._given, self.nearby)

    @cached_property
    def _given(self) -> list[str]:
        """All indentations of the quoted texts, except those that only align a line with the one above it."""
        indents = [line.indent for line in self.old] + [line.indent for line in self.new]
        around = [*self._old_contexts, *self._new_contexts]
        lines = [
            indent
            for indent, context in zip(indents, around, strict=True)
            if not context.depth or len(indent) % 2 == 0 or "\t" in indent
        ]
        return lines or indents

    @cached_property
    def _step(self) -> int:
        """One step of the quoted indentations in spaces, 1 if they have none."""
        return given_step(self._given) or 1

    @cached_property
    def _old_contexts(self) -> list[LineContext]:
        return [*contexts([line.text for line in self.old], self.starts_in_string)]

    @cached_property
    def _new_contexts(self) -> list[LineContext]:
        return [*contexts([line.text for line in self.new], self.starts_in_string)]

    @cached_property
    def _code(self) -> list[OldLine]:
        """The lines whose depth shows to which block they belong."""
        known = {id(line) for line in self.evidence}
        return [
            line
            for line, context in zip(self.old, self._old_contexts, strict=True)
            if id(line) in known and not context.depth and not context.in_string and not COMMENT.match(line.text)
        ]

    def check(self) -> None:
        """Raise `DoubtfulIndentation` if the relative depth of lines differs from the quoted one."""
        if self.is_verbatim:
            if self.hangs:
                self._check_new()
            return
        by_depth = sorted(self._code, key=lambda line: (_width(line.indent), _width(line.actual or "")))
        for one, other in pairwise(by_depth):
            quoted = _width(other.indent) - _width(one.indent)
            actual = _width(other.actual or "") - _width(one.actual or "")
            if (quoted > 0) != (actual > 0) or (
                not quoted and (one.indent, one.actual) != (other.indent, other.actual)
            ):
                raise contradiction(one, other)
        self._check_own()
        self._check_new()
        self._check_order()

    def _check_own(self) -> None:
        """Raise `DoubtfulIndentation` if the new text, unlike the old one, seems to have the file's indentation."""
        if self.are_lines or self.hangs or not self.new:
            return
        found = self._kept_as_in_file() or self._outermost_as_in_file()
        if found is not None and any(line.indent != self.of(number) for number, line in enumerate(self.new)):
            raise shared_depth(*found)

    def _kept_as_in_file(self) -> tuple[NewLine, OldLine] | None:
        """Return a kept line that has the file's indentation in the new text only, if no line contradicts that."""
        pairs = [(line, self.old[line.kept]) for line in self.new if line.kept is not None]
        if any(old.actual not in (None, line.indent) for line, old in pairs):
            return None
        found = next(((line, old) for line, old in pairs if old.actual is not None and old.indent != old.actual), None)
        outermost = min((_width(line.actual or "") for line in self.evidence), default=0)
        step = gcd(*map(_width, self.nearby)) or 1
        widths = [_width(line.indent) for line in self.new if line.kept is None]
        return found if all(width >= outermost and width % step == 0 for width in widths) else None

    def _outermost_as_in_file(self) -> tuple[NewLine, OldLine] | None:
        """Return the outermost lines of both texts if only the new one is indented as in the file."""
        old = min(self.evidence, key=lambda line: _width(line.indent), default=None)
        new = min(self.new, key=lambda line: _width(line.indent))
        return (new, old) if old is not None and new.indent == old.actual != old.indent else None

    def _check_new(self) -> None:
        """Raise `DoubtfulIndentation` if the new text is not indented as its own lines require."""
        for one, other in pairwise(self.new):
            if one.kept is not None and other.kept is not None:
                continue
            # Text that was moved to the left margin as a whole loses the depth of its first step.
            is_opened = BLOCK_OPENER.fullmatch(one.text) or (one.text.endswith("{") and other.text[0] not in "{}#")
            if is_opened and not other.indent:
                raise DoubtfulIndentation(
                    f"{quote(one.text)} opens a block, but {quote(other.text)} below it is not indented deeper; give "
                    "all lines, old and new, with the indentation of the file",
                    self._lines(),
                )
        for line in self.new:
            if line.kept is None and line.blanks > 1 and not line.indent and self._is_shifted_in(line.indent):
                raise DoubtfulIndentation(
                    f"{quote(line.text)} follows {line.blanks} blank lines and has no indentation, but "
                    "the lines around it are deeper in the file than in the text that was given; give all "
                    "lines, old and new, with the indentation of the file",
                    self._lines(),
                )

    def _check_order(self) -> None:
        """Raise `DoubtfulIndentation` for a new line that is deeper than an old one as given, but would not be here.

        The same holds for a shallower one: the file has no depth for it.
        """
        known = {(line.indent, line.actual or ""): line for line in reversed(self._code)}
        seen: set[tuple[str, str]] = set()
        for number, line in enumerate(self.new):
            context = self._new_contexts[number]
            is_code = not context.depth and not context.in_string and not COMMENT.match(line.text)
            if line.kept is not None or not is_code or not (number or self.are_lines):
                continue
            given, made = self.moved + line.indent, self.of(number)
            for (quoted, actual), old in known.items() if (given, made) not in seen else ():
                is_deeper, is_shallower = len(given) > len(quoted), len(given) < len(quoted)
                if not (given.startswith(quoted) if is_deeper else quoted.startswith(given)):
                    continue
                if (is_deeper, is_shallower) != (_width(made) > _width(actual), _width(made) < _width(actual)):
                    raise no_depth(line, given, old)
            seen.add((given, made))

    def _is_shifted_in(self, indent: str) -> bool:
        return _width(self.indents.of(indent)) > _width(indent)

    def _lines(self) -> tuple[int, ...]:
        return (self.old[0].number,) if self.old else ()

    def of(self, number: int) -> str:
        """Return the indentation of a new line, by its number (from 0)."""
        if number not in self._indents:
            # Each depends on its parent, which may be hundreds of lines above, so recursion would go too deep.
            waiting = [number]
            while self._parents[waiting[-1]] is not None and self._parents[waiting[-1]] not in self._indents:
                parent = self._parents[waiting[-1]]
                assert parent is not None
                waiting.append(parent)
            for one in reversed(waiting):
                self._indents[one] = self._indent(one)
        return self._indents[number]

    def _indent(self, number: int) -> str:
        line = self.new[number]
        if line.kept is not None and line.indent == self.old[line.kept].indent:
            own = self.old[line.kept].actual
            # The quote may begin after the indentation of its first line, which is then unknown.
            if own is not None and (line.kept or not self.hangs):
                return own
        if self.hangs and not line.indent and self._matched.get(number) == 0:
            return self.old[0].actual or ""
        quoted = self.moved + line.indent
        if self.is_verbatim:
            return self.indents.of(quoted)
        direct = self._same_depth(number, quoted)
        if direct is not None:
            return direct
        parent = self._parents[number]
        if parent is not None:
            return self._below(self._indents[parent], self.new[parent], quoted[len(self.moved) :], line.text)
        return self._further_out(number, quoted)

    def _same_depth(self, number: int, quoted: str) -> str | None:
        """Return the file's indentation of lines quoted with the same one, or `None` if there are none."""
        alike, are_same = self._alike.get((quoted, self._new_contexts[number].in_string), ((), True))
        if are_same:
            return alike[0][1].actual if alike else None
        for at, line in alike:
            if at == self._matched.get(number):
                return line.actual
        start, stop = self._replaced[number]
        above = [line for at, line in alike if at < start][-1:]
        here = [line for at, line in alike if start <= at < stop]
        below = [line for at, line in alike if at >= stop][:1]
        near = [*above, *here, *below]
        if (here or (above and below)) and len({line.actual for line in near}) == 1:
            return near[0].actual
        raise contradiction(near[0], next(line for _, line in alike if line.actual != near[0].actual))

    @cached_property
    def _alike(self) -> dict[tuple[str, bool], tuple[list[tuple[int, OldLine]], bool]]:
        """The old lines by indentation, inside and outside of strings, and whether the file indents them all alike."""
        found: dict[tuple[str, bool], list[tuple[int, OldLine]]] = {}
        for at, line in enumerate(self.old):
            if line.actual is not None and (at or not self.hangs):
                found.setdefault((line.indent, self._old_contexts[at].in_string), []).append((at, line))
        return {key: (lines, len({line.actual for _, line in lines}) == 1) for key, lines in found.items()}

    @cached_property
    def _matched(self) -> dict[int, int]:
        kept = {number: line.kept for number, line in enumerate(self.new) if line.kept is not None}
        return matched(kept, len(self.old), len(self.new))

    @cached_property
    def _replaced(self) -> list[tuple[int, int]]:
        """For each new line, the range of old lines that it replaces."""
        starts, stops = [0] * len(self.new), [len(self.old)] * len(self.new)
        for number in range(1, len(self.new)):
            above = self.new[number - 1].kept
            starts[number] = starts[number - 1] if above is None else above + 1
        for number in reversed(range(len(self.new) - 1)):
            below = self.new[number + 1].kept
            stops[number] = stops[number + 1] if below is None else below
        return [*zip(starts, stops, strict=True)]

    def _below(self, indent: str, parent: NewLine, quoted: str, text: str) -> str:
        """Return the indentation of a line that is deeper than its parent."""
        further = quoted[len(parent.indent) :]
        mark = LIST_MARK.match(parent.text)
        if "\t" not in further and (
            (mark and len(mark[0]) == len(further) and not LIST_MARK.match(text))
            or opened_at(parent.text) == len(further)
            or len(further) % self._step
        ):
            return indent + further
        return indent + self.indents.extra(further)

    def _further_out(self, number: int, quoted: str) -> str:
        """Return the indentation of a line that is no deeper than any line above it in the new text."""
        indents = self.indents
        shortest = min((line for line in self.evidence), key=lambda line: len(line.indent), default=None)
        if shortest is not None and shortest.indent.startswith(quoted):
            less = indents.extra(shortest.indent[len(quoted) :])
            if len(less) > len(shortest.actual or ""):
                raise DoubtfulIndentation(
                    f"the new line {quote(self.new[number].text)} is indented less than {quote(shortest.text)}, but "
                    f"the file does not indent that line (line {shortest.number}) enough for a smaller indentation; "
                    "give all lines, old and new, with the indentation of the file",
                    (shortest.number,),
                )
        return indents.of(quoted)

    @cached_property
    def _parents(self) -> list[int | None]:
        """For each new line its parent: the nearest shallower line above it."""
        parents: list[int | None] = []
        above: list[int] = []
        for number, line in enumerate(self.new):
            while above and not (
                len(self.new[above[-1]].indent) < len(line.indent)
                and line.indent.startswith(self.new[above[-1]].indent)
            ):
                above.pop()
            hangs = bool(above) and above[-1] == 0 and self.hangs
            parents.append(above[-1] if above and not hangs else None)
            above.append(number)
        return parents


def matched(kept: Mapping[int, int], old: int, new: int) -> dict[int, int]:
    """Map lines of a new text to the old lines that they equal, or that they replace one for one."""
    pairs = dict(kept)
    above, before = -1, -1
    for number, known in [*sorted(kept.items()), (new, old)]:
        if number - above == known - before:
            pairs.update({above + step: before + step for step in range(1, number - above)})
        above, before = number, known
    return pairs


def _pair(line: OldLine) -> Pair:
    assert line.actual is not None
    return line.indent, line.actual


def _width(indent: str) -> int:
    return len(indent.expandtabs(TAB)) if "\t" in indent else len(indent)
