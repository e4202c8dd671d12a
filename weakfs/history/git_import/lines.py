"""The lines of a git history: the first parents of a branch, and the side branches that were merged into it."""

from __future__ import annotations

from collections.abc import Callable

from attrs import field

from weakfs.class_decorators import define

# Branches nested more deeply than this are recorded as one change each.
MAX_DEPTH = 50


@define(eq=False)
class Line:
    """Commits, oldest first, each of which is the first parent of the next; `base` is the parent of the oldest.

    `sides` has the merged line for each merge that can be recorded as a merge. `is_cut` is true if the parent of the
    oldest commit is missing, as in a shallow clone.
    """

    commits: tuple[str, ...]
    base: str | None
    sides: dict[str, Line] = field(factory=dict[str, "Line"])
    is_cut: bool = False

    @property
    def size(self) -> int:
        """The number of commits on the line and its sides."""
        return len(self.commits) + sum(side.size for side in self.sides.values())


def main_line(tip: str, parents_of: Callable[[str], tuple[str, ...] | None]) -> Line:
    """Return the line that ends at a commit, with its sides. `parents_of` returns `None` for a missing commit.

    A merge is recorded as a merge if it has two parents, and if the first parents of the second one lead back to an
    earlier commit of the line; no commit is on two lines.
    """
    commits: list[str] = []
    here: str | None = tip
    is_cut = False
    while here is not None:
        parents = parents_of(here)
        if parents is None:
            is_cut = True
            break
        commits.append(here)
        here = parents[0] if parents else None
    line = Line(tuple(reversed(commits)), None, is_cut=is_cut)
    _find_sides(line, parents_of, set(commits), MAX_DEPTH)
    return line


def _find_sides(line: Line, parents_of: Callable[[str], tuple[str, ...] | None], placed: set[str], depth: int) -> None:
    own = set[str]() if line.base is None else {line.base}
    # Commits that do not lead back to this line.
    lost: set[str] = set()
    for commit in line.commits:
        parents = parents_of(commit) or ()
        if len(parents) == 2 and depth:
            side = _side(parents[1], own, placed, lost, parents_of)
            if side is not None:
                placed.update(side.commits)
                line.sides[commit] = side
        own.add(commit)
    for side in line.sides.values():
        _find_sides(side, parents_of, placed, depth - 1)


def _side(
    tip: str,
    own: set[str],
    placed: set[str],
    lost: set[str],
    parents_of: Callable[[str], tuple[str, ...] | None],
) -> Line | None:
    """Return the line from a commit of `own` to `tip`; `None` if there is no such line."""
    commits: list[str] = []
    here = tip
    while here not in own:
        parents = None if here in placed or here in lost else parents_of(here)
        if not parents:
            lost.update(commits)
            lost.add(here)
            return None
        commits.append(here)
        here = parents[0]
    return Line(tuple(reversed(commits)), here) if commits else None
