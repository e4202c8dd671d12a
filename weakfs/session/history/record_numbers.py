"""Record numbers across merges: which number a record of a branch has in the line that the branch was merged into.

A branch shares the records up to its base with the line that it left. What it adds gets other numbers when it is
merged, so every record number inside events, slices and snapshots is mapped then: one up to the base stays, one behind
it is shifted. A fork that goes on after a merge has several shifts, one for each merge.
"""

from __future__ import annotations

from attrs import define, frozen

from weakfs.session.history.log import Log


@define(eq=False)
class Numbering:
    """The record numbers of one line of history.

    The line of a transaction shares the records up to `base` with `outer`, which it left, and has a `shift` once it
    was joined into a line. The line of a session or a fork has none of these.
    """

    outer: Numbering | None = None
    base: int = 0
    shift: Shift | None = None

    def around(self) -> list[Numbering]:
        """List this line and the lines that it is inside of, innermost first."""
        lines: list[Numbering] = [self]
        while lines[-1].outer is not None:
            lines.append(lines[-1].outer)
        return lines


@frozen(eq=False)
class Shift:
    """Record numbers from `first` on: adding `by` gives the numbers that these records have in `into`."""

    first: int
    by: int
    into: Numbering


@frozen(eq=False)
class Renumbering:
    """Maps the record numbers of a branch to those of the line `target`; call it with a number.

    `left` is the line that the branch left, and `shifts` are those of all its merges, oldest first. A record that the
    target does not know, as of a transaction that is open elsewhere, becomes the newest one before it that it knows.
    """

    left: Numbering
    shifts: Log[Shift]
    target: Numbering

    def __call__(self, number: int) -> int:
        here = self.left
        shift = self._shift(number)
        if shift is not None:
            number, here = number + shift.by, shift.into
        if here is self.target:
            return number
        around = self.target.around()
        while here not in around:
            if here.shift is not None and number >= here.shift.first:
                number, here = number + here.shift.by, here.shift.into
            elif here.outer is not None:
                number, here = min(number, here.base), here.outer
            else:
                return number
        # Of a line around the target, it knows the records from before it left.
        for inner in reversed(around[: around.index(here)]):
            number = min(number, inner.base)
        return number

    def _shift(self, number: int) -> Shift | None:
        """Return the last shift that does not begin behind a number."""
        low, high = 0, len(self.shifts)
        while low < high:
            middle = (low + high) // 2
            if self.shifts[middle].first <= number:
                low = middle + 1
            else:
                high = middle
        return self.shifts[low - 1] if low else None
