"""Trees that hold one directory in very many places.

Directories are shared: a tree that is copied into itself a few dozen times has a few dozen distinct directories but
more entries than any program can visit. Computations that visit each distinct directory once (digests, totals, saving)
are not affected. Code that visits all entries must call `check_repeats` first.
"""

from __future__ import annotations

from weakfs.errors import WeakfsError
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.directory import Directory

# A tree with more than `MOST_ENTRIES` entries is not walked if fewer than one in `MOST_COPIES` of them are distinct.
MOST_ENTRIES = 10_000_000
MOST_COPIES = 16
# How many pairs of directories of such trees may be compared again.
MOST_AGAIN = 100_000


class TreeTooLarge(WeakfsError, ValueError):
    """Raised if a tree holds its directories in so many places that its entries cannot all be visited."""


def check_repeats(tree: Directory) -> None:
    """Raise `TreeTooLarge` for a tree that cannot be walked. O(1) for trees of up to 10 million entries."""
    if tree.node_count > MOST_ENTRIES:
        distinct = _distinct_entries(tree)
        if tree.node_count > MOST_COPIES * distinct:
            raise TreeTooLarge(
                f"cannot go through a tree of {tree.node_count:,} entries, most of which are copies: only "
                f"{distinct:,} are distinct; choose a part of it"
            )


def _distinct_entries(tree: Directory) -> int:
    """Count the entries in the directories of a tree, each directory once."""
    seen = {id(tree)}
    stack = [tree]
    count = 0
    while stack:
        for _, node in maps.items(stack.pop()._children):
            count += 1
            if type(node) is not tuple and id(node) not in seen:
                seen.add(id(node))
                stack.append(node)
    return count


class Comparisons:
    """Counts repeated comparisons of directories while two or three trees are walked together.

    Costs nothing unless both trees are large: otherwise the smaller one bounds the work.
    """

    __slots__ = ("_again", "_seen")

    def __init__(self, one: Directory, other: Directory) -> None:
        is_bounded = min(one.node_count, other.node_count) <= MOST_ENTRIES
        self._seen: set[tuple[int, ...]] | None = None if is_bounded else set()
        self._again = 0

    def count(self, *directories: Directory) -> None:
        """Count a comparison. Raises `TreeTooLarge` if too many of them were repeated."""
        if self._seen is None:
            return
        key = tuple(map(id, directories))
        if key not in self._seen:
            self._seen.add(key)
            return
        self._again += 1
        if self._again > MOST_AGAIN:
            raise TreeTooLarge(
                "cannot compare two trees that hold differing directories in very many places; compare parts of them"
            )
