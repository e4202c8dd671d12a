"""Mapping the indentation of a given text to the indentation of a file, learned from the lines that both have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from math import gcd

from weakfs.class_decorators import frozen

# An indentation as given, and that of the same line in the file.
Pair = tuple[str, str]


# The width of a tab in a file that is indented with spaces and whose step is unknown.
USUAL_WIDTH = 4


@frozen
class Indents:
    """A mapping from indentations of a given text to those of the file.

    `pairs` are known; other indentations are inferred from their difference from these. `step` more spaces become one
    more `unit` in the file, or the same number of spaces if `step` is 0; one more tab becomes `tab`.
    """

    pairs: tuple[Pair, ...]
    step: int = 0
    unit: str = ""
    tab: str = "\t"

    @cached_property
    def _known(self) -> dict[str, str]:
        return dict(reversed(self.pairs))

    def of(self, indent: str) -> str:
        """Return the file's form of an indentation."""
        if indent not in self._known:
            self._known[indent] = self._inferred(indent)
        return self._known[indent]

    def _inferred(self, indent: str) -> str:
        less = [pair for pair in self.pairs if indent.startswith(pair[0])]
        if less:
            given, there = max(less, key=lambda pair: len(pair[0]))
            return there + self.extra(indent[len(given) :])
        more = [pair for pair in self.pairs if pair[0].startswith(indent)]
        if more:
            given, there = min(more, key=lambda pair: (len(pair[1]), len(pair[0])))
            return there[: max(0, len(there) - len(self.extra(given[len(indent) :])))]
        return self.extra(indent)

    def extra(self, extra: str) -> str:
        """Return the file's form of additional indentation, without the indentation to which it is added."""
        blanks = extra.replace("\t", "")
        tabs = self.tab * (len(extra) - len(blanks))
        if not self.step:
            return tabs + blanks
        steps, rest = divmod(len(blanks), self.step)
        return tabs + self.unit * steps + blanks[len(blanks) - rest :]


def learn(pairs: Iterable[Pair], given: Sequence[str], nearby: Sequence[str], *, adds_blocks: bool = False) -> Indents:
    """Learn from pairs; `given` are all indentations of the given texts, `nearby` those around the place in the file.

    If the pairs do not show how wide a step of the given texts is in the file, `adds_blocks` makes it the file's usual
    one.

    A step in the given texts becomes one step in the file, so that deeper lines stay deeper. A block whose depth in the
    file differs from the given depth is shifted as a whole; its steps stay the same.
    """
    known = sorted(dict(reversed([*pairs])).items(), key=lambda pair: len(pair[0]))
    there = next((there for _, there in reversed(known) if there), "")
    usual = usual_unit(nearby)
    own = given_step(given)
    if _tabs(there or usual):
        return Indents(tuple(known), own, "\t")
    usual = "" if _tabs(usual) else usual
    if not there and not usual:
        return Indents(tuple(known))
    tab = _measured(known, 1, usual) or usual or _width(nearby)
    if not own or all(one == other for one, other in known):
        return Indents(tuple(known), tab=tab)
    step, unit = own, _measured(known, own, usual)
    if not unit:
        short, near = known[-1]
        unit = usual if adds_blocks or (short and len(short) * len(usual) == len(near) * own) else ""
    if len(unit) in (0, own):
        # No-break spaces and the like count as spaces.
        step, unit = (0, "") if "".join(given).isascii() else (1, " ")
    return Indents(tuple(known), step, unit, tab)


def given_step(given: Sequence[str]) -> int:
    """Return the number of spaces in one step of the given indentations, 0 if none of them has spaces."""
    widths = [len(indent) for indent in given if indent and "\t" not in indent]
    step = gcd(*widths)
    if step in (1, 2):
        # Alignment below an opening bracket is not a step, and few lines have it.
        deeper = Counter(after - before for before, after in pairwise(widths) if after > before + 1)
        usual = max(deeper, key=lambda width: (deeper[width], -width), default=step)
        if sum(width % usual != 0 for width in widths) * 4 <= len(widths):
            return usual
    return step if step != 1 else min(widths)


def _measured(known: Sequence[Pair], own: int, usual: str) -> str:
    """Return one step of `own` characters in the form of a file of spaces, from two lines of different depth."""
    for (short, near), (long, far) in pairwise(known):
        steps, rest = divmod(len(long) - len(short), own)
        further = far.removeprefix(near)
        if not long.startswith(short) or not far.startswith(near) or not further or not steps or rest:
            continue
        if _tabs(long) != (own == 1):
            continue
        if steps > 1 and usual and len(further) in (len(usual), len(usual) * steps):
            return usual
        return further[: len(further) // steps] or usual
    return ""


def _tabs(indent: str) -> bool:
    return indent.startswith("\t")


def _width(nearby: Sequence[str]) -> str:
    width = gcd(*map(len, nearby))
    return " " * (width if 1 < width < USUAL_WIDTH else USUAL_WIDTH)


def usual_unit(indents: Sequence[str]) -> str:
    """Return one step of indentation in a text with such indentations, or "" if it cannot be determined."""
    if sum(map(_tabs, indents)) * 2 > sum(map(bool, indents)):
        return "\t"
    widths = [len(indent) for indent in indents if not _tabs(indent)]
    deeper = Counter(after - before for before, after in pairwise(widths) if after > before + 1)
    return " " * max(deeper, key=lambda width: (deeper[width], -width)) if deeper else ""
