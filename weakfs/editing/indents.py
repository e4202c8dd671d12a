"""Indentation of one text in the terms of another, learnt from lines that both of them have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from math import gcd

from attrs import frozen

# An indentation as it was given, and that of the same line in the file.
Pair = tuple[str, str]


@frozen
class Indents:
    """What the indentations of a given text are in the file.

    `pairs` are known; from them others are told by what they have more or less. `step` characters more are
    `unit` more in the file, 0 if as many of the same.
    """

    pairs: tuple[Pair, ...]
    step: int = 0
    unit: str = ""

    @cached_property
    def _known(self) -> dict[str, str]:
        return dict(reversed(self.pairs))

    def of(self, indent: str) -> str:
        """Give an indentation as the file has it."""
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
            given, there = min(more, key=lambda pair: len(pair[0]))
            return there[: max(0, len(there) - len(self.extra(given[len(indent) :])))]
        return self.extra(indent)

    def extra(self, extra: str) -> str:
        """Give what is further in, without what it is further in than, as the file has it."""
        if not self.step:
            return extra
        steps, rest = divmod(len(extra), self.step)
        return self.unit * steps + extra[len(extra) - rest :]


def learn(pairs: Iterable[Pair], given: Sequence[str], nearby: Sequence[str]) -> Indents:
    """Learn from pairs; `given` are all indentations of the given texts, `nearby` those around it in the file."""
    distinct = dict(reversed([*pairs]))
    known = sorted(distinct.items(), key=lambda pair: len(pair[0]))
    if all(one == other for one, other in known):
        return Indents(tuple(known))
    for (short, near), (long, far) in pairwise(known):
        if long.startswith(short) and far.startswith(near) and len(far) > len(near):
            return _stepping(known, len(long) - len(short), far[len(near) :])
    short, near = known[-1]
    own = gcd(*(len(indent) for indent in given))
    if _tabs(short) == _tabs(near) and short and near:
        unit = usual_unit(nearby)
        if own and not _tabs(near) and len(unit) != own and len(short) * len(unit) == len(near) * own:
            return _stepping(known, own, unit)
        return _alike(known, given)
    if short and near and (len(short) % len(near) == 0 or len(near) % len(short) == 0):
        return _stepping(known, len(short), near)
    unit = near[:1] if _tabs(near) else usual_unit(nearby)
    if own and _tabs(unit) and not any(map(_tabs, given)):
        return _stepping(known, own, unit)
    return _alike(known, given)


def _alike(known: Sequence[Pair], given: Sequence[str]) -> Indents:
    """Take what is more or less as it is, no-break spaces and the like as spaces."""
    return Indents(tuple(known), *((0, "") if "".join(given).isascii() else (1, " ")))


def _tabs(indent: str) -> bool:
    return indent.startswith("\t")


def _stepping(known: Sequence[Pair], step: int, unit: str) -> Indents:
    parts = gcd(step, len(unit)) if len(set(unit)) == 1 else 1
    step, unit = step // parts, unit[: len(unit) // parts]
    same = step == len(unit) and all(_tabs(given) == _tabs(there) for given, there in known if given and there)
    return Indents(tuple(known), 0 if same else step, unit)


def usual_unit(indents: Sequence[str]) -> str:
    """Give what one step of indentation is in a text with such indentations, "" if that cannot be seen."""
    if sum(map(_tabs, indents)) * 2 > sum(map(bool, indents)):
        return "\t"
    widths = [len(indent) for indent in indents if not _tabs(indent)]
    deeper = Counter(after - before for before, after in pairwise(widths) if after > before + 1)
    return " " * max(deeper, key=lambda width: (deeper[width], -width)) if deeper else ""
