"""Layers: looking up entries in both, merging their trees, and computing the upper tree that gives a wanted result.

In the upper tree, a whiteout hides the lower entry at its path, a leaf replaces it, and a directory is merged with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from weakfs.backends.deep_recursion import Steps, run
from weakfs.class_decorators import frozen
from weakfs.filesystem import FilesystemPrimitives
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.leaf import CREATED_AT, MODE, MODIFIED_AT, WHITEOUT, Leaf
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Node, Segments, find_or_blocking_leaf, is_whiteout, tree_of

# Bytes, files (including links) and directories, as in a directory's totals.
Totals = tuple[int, int, int]


@frozen(eq=False)
class Layers:
    """An upper tree over a lower filesystem, at one moment."""

    upper: FileTree
    lower: FilesystemPrimitives

    def held(self, segments: Segments) -> Node | None:
        """Return the upper entry at a path, or the whiteout or file that blocks the path."""
        return find_or_blocking_leaf(self.upper, segments)

    def below(self, segments: Segments) -> Node | None:
        """Return the lower entry that is visible at a path without an upper entry of its own."""
        held = self.held(segments[:-1]) if segments else self.upper
        if held is not None and type(held) is not FileTree:
            return None
        return self.lower.lookup(segments)

    def hides(self, segments: Segments) -> bool:
        """Return whether a lower entry would be visible at a path if the upper tree had no entry there."""
        return self.lower.lookup(segments) is not None and type(self.held(segments[:-1])) in (FileTree, type(None))


def is_untouched(root: FileTree) -> bool:
    """Return whether this is the root of a new session, in which nothing was ever stored."""
    begun = (root.mode, root.modified_at, root.created_at) == (leaves.DIRECTORY_MODE, 0, 0)
    return begun and not root.node_count


def bare(tree: FileTree) -> FileTree:
    """Return a directory with its bits and times but without entries."""
    return FileTree({}, (), tree.mode, tree.modified_at, tree.created_at)


def nested(names: Sequence[str], directories: Sequence[FileTree]) -> FileTree:
    """Return a tree in which each of these directories, which have no entries, contains the next one."""
    entries: dict[str, Node] = {}
    for name, one in zip(reversed(names), reversed(directories), strict=True):
        entries = {name: tree_of(entries, mode=one.mode, modified_at=one.modified_at, created_at=one.created_at)}
    return tree_of(entries)


def merged(upper: FileTree, lower: FileTree) -> FileTree:
    """Return the merged view of two roots. O(upper tree)."""
    return lower if is_untouched(upper) else run(_merged(upper, lower))


def _merged(upper: FileTree, lower: FileTree) -> Steps[FileTree]:
    children = lower._children
    size, files, directories = lower.total_size, lower.file_count, lower.directory_count
    for name, node in maps.items(upper._children):
        below: Node | None = lower._entry(name)
        seen: Node | None = None if is_whiteout(node) else node
        if type(node) is FileTree:
            seen = yield _merged(node, below if type(below) is FileTree else EMPTY_TREE)
        less, more = totals_of(below), totals_of(seen)
        size, files, directories = (a - b + c for a, b, c in zip((size, files, directories), less, more, strict=True))
        if seen is not None:
            children = maps.put(children, name, seen)
        elif below is not None:
            children = maps.remove(children, name)
    return FileTree(*maps.parts(children), upper.mode, upper.modified_at, upper.created_at, files, directories, size)


def totals_of(node: Node | None) -> Totals:
    """Return the totals of a node and everything in it."""
    if node is None:
        return 0, 0, 0
    if type(node) is FileTree:
        return node.total_size, node.file_count, node.directory_count + 1
    return leaves.size_of(node), 1, 0


def upper_for(lower: FileTree, wanted: FileTree) -> FileTree:
    """Return the upper tree that makes `lower` appear as `wanted`, including times. O(differences)."""
    return run(_difference(lower, wanted)) or bare(wanted)


def _difference(lower: FileTree, wanted: FileTree) -> Steps[FileTree | None]:
    held: dict[str, Node] = {}
    for name, old, new in maps.differences(lower._children, wanted._children):
        if new is None:
            held[name] = leaves.special(WHITEOUT, at=wanted.modified_at)
        elif type(new) is FileTree:
            inner = (yield _difference(old, new)) if type(old) is FileTree else new
            if inner is not None:
                held[name] = inner
        elif type(old) is not tuple or not _is_same(old, new):
            held[name] = new
    own = (wanted.mode, wanted.modified_at, wanted.created_at)
    if not held and own == (lower.mode, lower.modified_at, lower.created_at):
        return None
    return tree_of(held, mode=wanted.mode, modified_at=wanted.modified_at, created_at=wanted.created_at)


def _is_same(one: Leaf, other: Leaf) -> bool:
    times = (one[MODIFIED_AT], one[CREATED_AT]) == (other[MODIFIED_AT], other[CREATED_AT])
    return times and one[MODE] == other[MODE] and leaves.same(one, other)


def counterpart(lower: FileTree, upper: FileTree) -> FileTree:
    """Return the lower entry at each path of the upper tree; a merged directory is reduced to its bits and times."""
    return run(_counterpart(lower, upper))


def _counterpart(lower: FileTree, upper: FileTree) -> Steps[FileTree]:
    held: dict[str, Node] = {}
    for name, node in maps.items(upper._children):
        below = lower._entry(name)
        if type(below) is FileTree and type(node) is FileTree:
            held[name] = yield _counterpart(below, node)
        elif below is not None:
            held[name] = below
    return tree_of(held, mode=lower.mode, modified_at=lower.modified_at, created_at=lower.created_at)
