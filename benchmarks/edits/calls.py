"""Quoted lines as calls: `edit_file`, a V4A hunk, a unified hunk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.edits.blocks import Line
from benchmarks.edits.example import PATH, Edit, Patch


@dataclass(frozen=True)
class Hunk:
    """Lines of a patch; `start` and `new_start` count from 0, `anchors` are the texts after each `@@` of V4A."""

    lines: tuple[Line, ...]
    start: int
    new_start: int
    anchors: tuple[str, ...] = ()
    at_end: bool = False

    @property
    def old(self) -> tuple[str, ...]:
        return tuple(line.text for line in self.lines if line.mark != "+")

    @property
    def new(self) -> tuple[str, ...]:
        return tuple(line.text for line in self.lines if line.mark != "-")

    def shifted(self, by: int) -> Hunk:
        """Return the hunk with other line numbers."""
        return replace(self, start=self.start + by, new_start=self.new_start + by)


def edit_file(lines: Sequence[Line], *, ends: bool) -> Edit:
    """Return the call of `edit_file`; `ends` says whether both texts end with a newline."""
    old = "\n".join(line.text for line in lines if line.mark != "+")
    new = "\n".join(line.text for line in lines if line.mark != "-")
    return Edit(f"{old}\n", f"{new}\n") if ends else Edit(old, new)


def v4a(hunks: Sequence[Hunk]) -> Patch:
    rows = ["*** Begin Patch", f"*** Update File: {PATH}"]
    for hunk in hunks:
        rows += [f"@@ {anchor}" for anchor in hunk.anchors] or ["@@"]
        rows += [line.mark + line.text for line in hunk.lines]
        rows += ["*** End of File"] if hunk.at_end else []
    return Patch("\n".join((*rows, "*** End Patch")), "v4a")


def unified(hunks: Sequence[Hunk], *, count_errors: Sequence[tuple[int, int]] = ()) -> Patch:
    """Return a unified diff; `count_errors` are added to the counts of each hunk."""
    rows = [f"--- a/{PATH}", f"+++ b/{PATH}"]
    errors = count_errors or [(0, 0)] * len(hunks)
    for hunk, (old_error, new_error) in zip(hunks, errors, strict=True):
        old, new = len(hunk.old), len(hunk.new)
        # A range without lines names the line before it.
        start, new_start = hunk.start + bool(old), hunk.new_start + bool(new)
        rows.append(f"@@ -{start},{max(0, old + old_error)} +{new_start},{max(0, new + new_error)} @@")
        rows += [line.mark + line.text for line in hunk.lines]
    return Patch("".join(f"{row}\n" for row in rows), "unified")
