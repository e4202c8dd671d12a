"""About how much memory one version of a tree takes that another does not."""

from __future__ import annotations

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.leaf import size_of
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree

# A directory's node; its dict of names, or the part of it that changed, for each name; and a leaf.
DIRECTORY, NAME, LEAF = 200, 50, 120


def weight(tree: FileTree, other: FileTree, counted: set[int]) -> int:
    """Give about how many bytes `tree` takes that `other` does not. O(what differs).

    Contents whose identity is `counted` take nothing.
    """
    total = 0
    seen: set[int] = set()
    stack = [(tree, other)]
    while stack:
        new, old = stack.pop()
        if new is old or id(new) in seen:
            continue
        seen.add(id(new))
        # A directory of more names than one dict holds copies some of its parts.
        changed = 0
        for _, before, after in maps.differences(old._children, new._children):
            changed += 1
            if type(after) is FileTree:
                stack.append((after, before if type(before) is FileTree else EMPTY_TREE))
            elif type(after) is tuple:
                total += LEAF
                if id(after[0]) not in counted:
                    total += size_of(after)
        names = len(new._children) if type(new._children) is dict else changed * maps.WIDTH
        total += DIRECTORY + NAME * names
    return total
