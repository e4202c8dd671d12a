"""The indentation of inserted lines if the lines around them were quoted with an indentation other than the file's.

Edits and patches of every format use this. The mapping from the quoted indentation to the file's is learned from the
lines that both have. If these lines contradict one another, the block of a new line is ambiguous, and the edit is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from weakfs.editing.doubtful_indentation import (
    DoubtfulIndentation,
    NewLine,
    OldLine,
    contradiction,
    lost_indentation,
    quote,
)
from weakfs.editing.indentation import Indents, Pair, given_step, learn
from weakfs.editing.line_context import LineContext, contexts, opened_at

OPENING = (":", "{", "(", "[")
# A line whose indentation is not significant: a comment, or a preprocessor directive.
COMMENT = re.compile(r"#|//|/\*|\*|--|<!--|;|%")
# Text after a list marker is indented by the width of the marker.
LIST_MARK = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ ]+")
TAB = 8


class Reindentation:
    """The indentation of each line of a new text at one place of a file.

    `nearby` are indentations of lines around that place. `in_string` is true if a multi-line string was opened above
    it, `are_lines` if the quote has whole lines. Raises `DoubtfulIndentation` if the lines common to both texts
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
        return moved if all(line.indent.startswith(moved) for line in self.code) else ""

    @cached_property
    def begins_at_margin(self) -> bool:
        """Whether the first new line, given without indentation unlike the old one, is meant to have none.

        Otherwise it has lost the indentation of the first old line. It is meant if the quote has other lines without
        indentation, and what follows is inside the block that the new line opens. Raises `DoubtfulIndentation` if both
        are possible.
        """
        if self.is_verbatim:
            return True
        margin = next((line for line in self.code if not line.indent), None)
        if margin is None or self.of(0) == self.old[0].actual:
            return False
        first, *others = self.new
        opens = first.text.endswith(OPENING) or all(line.indent for line in others)
        if others and others[0].indent and opens and self._matched.get(0) != 0:
            return True
        raise lost_indentation(first, self.old[0], margin)

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
        known = dict(reversed([*map(_pair, self.code), *pairs]))
        several = {given for given, there in pairs if known[given] != there}
        clear = [pair for pair in known.items() if pair[0] not in several]
        shifts = {len(there) - len(given) for given, there in clear if set(given + there) <= {" "}}
        if len(clear) > 1 and len(shifts) == 1 and not any("\t" in given + there for given, there in clear):
            # The block as a whole has a depth other than the quoted one; its steps are those of the file.
            return Indents(tuple(sorted(clear, key=lambda pair: len(pair[0]))))
        return learn(clear or [*known.items()], self._given, self.nearby, adds_blocks=self._adds_blocks)

    @cached_property
    def _adds_blocks(self) -> bool:
        """Whether the new text has deeper lines, and all of them are below a line that opens a block."""
        return bool(self.deeper) and all(self.new[parent].text.endswith(OPENING) for parent, _ in self.deeper)

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
    def code(self) -> list[OldLine]:
        """The lines whose depth shows to which block they belong."""
        known = {id(line) for line in self.evidence}
        return [
            line
            for line, context in zip(self.old, self._old_contexts, strict=True)
            if id(line) in known and not context.depth and not context.in_string and not COMMENT.match(line.text)
        ]

    @cached_property
    def deeper(self) -> list[tuple[int, int]]:
        """The new lines of code that have a parent: the number of the parent, and that of the line."""
        return [
            (parent, at)
            for at, parent in enumerate(self.parents)
            if parent is not None and self.is_code(parent) and self.is_code(at)
        ]

    def is_code(self, number: int) -> bool:
        """Return whether the depth of a new line shows to which block it belongs."""
        context = self._new_contexts[number]
        return not context.depth and not context.in_string and not COMMENT.match(self.new[number].text)

    def of(self, number: int) -> str:
        """Return the indentation of a new line, by its number (from 0)."""
        if number not in self._indents:
            # Each depends on its parent, which may be hundreds of lines above, so recursion would go too deep.
            waiting = [number]
            while self.parents[waiting[-1]] is not None and self.parents[waiting[-1]] not in self._indents:
                parent = self.parents[waiting[-1]]
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
        parent = self.parents[number]
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
        start, stop = self.replaced[number]
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
    def replaced(self) -> list[tuple[int, int]]:
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
    def parents(self) -> list[int | None]:
        """For each new line its parent: the nearest shallower line above it."""
        return _parents([line.indent for line in self.new], self.hangs)

    @cached_property
    def old_parents(self) -> list[int | None]:
        """For each old line its parent."""
        return _parents([line.indent for line in self.old], self.hangs)


def _parents(indents: Sequence[str], hangs: bool) -> list[int | None]:
    parents: list[int | None] = []
    above: list[int] = []
    for number, indent in enumerate(indents):
        while above and not (len(indents[above[-1]]) < len(indent) and indent.startswith(indents[above[-1]])):
            above.pop()
        is_known = bool(above) and not (above[-1] == 0 and hangs)
        parents.append(above[-1] if is_known else None)
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


def width(indent: str) -> int:
    return len(indent.expandtabs(TAB)) if "\t" in indent else len(indent)
