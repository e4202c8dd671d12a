"""Record numbers across merges: mapping those of a branch to those of the timeline it was merged into.

A branch shares the records up to its base with the timeline that it left. Its own records are renumbered when it is
merged, so every record number inside events, slices and snapshots is mapped: one up to the base stays the same, a later
one is shifted. A fork that continues after a merge has several shifts, one for each merge.
"""

from __future__ import annotations

from bisect import bisect_right

from weakfs.class_decorators import define
from weakfs.session.slices.log import Log


class Numbering:
    """The record numbers of one timeline.

    The timeline of a transaction shares the records up to `base` with `outer`, the timeline that it left, and has a
    `shift` once it was merged. The timeline of a session or a fork has none of these, and needs no `__init__`, which
    every fork would call.
    """

    outer: Numbering | None = None
    base: int = 0
    shift: Shift | None = None

    @classmethod
    def inside(cls, outer: Numbering, base: int) -> Numbering:
        """Return the numbering of a transaction."""
        numbering = cls()
        numbering.outer, numbering.base = outer, base
        return numbering

    def around(self) -> list[Numbering]:
        """List this timeline and those that enclose it, innermost first."""
        lines: list[Numbering] = [self]
        while lines[-1].outer is not None:
            lines.append(lines[-1].outer)
        return lines


@define(eq=False)
class Shift:
    """A shift of the record numbers from `first` on: adding `by` gives the numbers of these records in `into`."""

    first: int
    by: int
    into: Numbering


@define(eq=False)
class Renumbering:
    """Maps the record numbers of a branch to those of the timeline `target`; call it with a number.

    `left` is the timeline that the branch left, and `shifts` are those of all its merges, oldest first. A record that
    the target does not have, such as one of an open transaction, becomes the newest earlier record of the target.
    """

    left: Numbering
    shifts: Log[Shift]
    target: Numbering

    def __call__(self, number: int) -> int:
        numbering = self.left
        shift = self._shift(number)
        if shift is not None:
            number, numbering = number + shift.by, shift.into
        if numbering is self.target:
            return number
        around = self.target.around()
        while numbering not in around:
            if numbering.shift is not None and number >= numbering.shift.first:
                number, numbering = number + numbering.shift.by, numbering.shift.into
            elif numbering.outer is not None:
                number, numbering = min(number, numbering.base), numbering.outer
            else:
                return number
        # If the timeline encloses the target, the target has its records up to where the target branched off.
        for inner in reversed(around[: around.index(numbering)]):
            number = min(number, inner.base)
        return number

    def _shift(self, number: int) -> Shift | None:
        """Return the last shift that begins at or before a number."""
        place = bisect_right(self.shifts, number, key=lambda shift: shift.first)
        return self.shifts[place - 1] if place else None
