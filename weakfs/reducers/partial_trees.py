"""Partially known trees: completing one with entries that another knows, and taking over changes from another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.leaf import CONTENT, MODIFIED_AT, WHITEOUT
from weakfs.reducers.tree.node import (
    EMPTY_TREE,
    FileTree,
    Node,
    Segments,
    entries,
    find,
    find_or_blocking_leaf,
    put,
    remove,
    status_of,
    walk,
    with_status,
)
from weakfs.reducers.tree.repeated_subtrees import Comparisons, check_repeats


def filled(tree: FileTree, nodes: Iterable[tuple[Segments, Node]], others: tuple[FileTree, ...]) -> FileTree:
    """Return a tree with `nodes` added, and existing directories filled, where neither it nor `others` have an entry.

    Nodes are added in path order: a directory's modification time is that of the last entry that it gained, and so is
    the same in every process.
    """
    stack = sorted(nodes, key=_by_path, reverse=True)
    while stack:
        segments, node = stack.pop()
        existing = [found for one in (tree, *others) if (found := find_or_blocking_leaf(one, segments)) is not None]
        if not existing:
            at = node.modified_at if type(node) is FileTree else node[MODIFIED_AT]
            tree = put(tree, segments, node, at)
        elif type(node) is FileTree and all(type(found) is FileTree for found in existing):
            check_repeats(node)
            stack.extend(((*segments, name), child) for name, child in reversed(entries(node)))
    return tree


def _by_path(entry: tuple[Segments, Node]) -> Segments:
    return entry[0]


def missing(found: FileTree, later: FileTree) -> Iterator[tuple[Segments, Node]]:
    """Yield the topmost nodes that only `later` holds."""
    comparisons = Comparisons(found, later)
    stack: list[tuple[Segments, FileTree, FileTree]] = [((), found, later)]
    while stack:
        segments, old_tree, new_tree = stack.pop()
        comparisons.count(old_tree, new_tree)
        for name, old, new in maps.differences(old_tree._children, new_tree._children):
            if old is None:
                yield (*segments, name), new
            elif type(old) is FileTree and type(new) is FileTree:
                stack.append(((*segments, name), old, new))


def with_changes(base: FileTree, ours: FileTree, theirs: FileTree) -> FileTree:
    """Return `ours` with every entry that `theirs` changed replaced by theirs. O(what they changed).

    The mode and the times of a directory that both have are theirs if they changed any of them, else ours.
    """
    # Imported here because a new process that merges nothing does not need it.
    from weakfs.reducers.tree.diff import equal

    merged = ours
    comparisons = Comparisons(base, theirs)
    stack: list[tuple[Segments, FileTree, FileTree]] = [((), base, theirs)]
    directories: list[tuple[Segments, FileTree]] = []
    while stack:
        segments, old_tree, new_tree = stack.pop()
        comparisons.count(old_tree, new_tree)
        at = new_tree.modified_at
        mine = find(ours, segments)
        is_changed = status_of(old_tree) != status_of(new_tree) or type(mine) is not FileTree
        directories.append((segments, new_tree if is_changed else cast(FileTree, mine)))
        for name, old, new in maps.differences(old_tree._children, new_tree._children):
            path = (*segments, name)
            if new is None:
                merged = remove(merged, path, at)
            elif type(new) is FileTree and type(find(merged, path)) is FileTree:
                stack.append((path, old if type(old) is FileTree else EMPTY_TREE, new))
            elif old != new and not (type(old) is FileTree and equal(old, new)):
                # After loading, equal nodes may be different objects: that is not a change.
                merged = put(merged, path, new, at)
    # Each change has touched the directory around it.
    for segments, known in reversed(directories):
        merged = _with_status(merged, segments, known)
    return merged


def _with_status(tree: FileTree, segments: Segments, known: FileTree) -> FileTree:
    """Return a tree whose directory at a path has the mode and the times of `known`."""
    found = find(tree, segments)
    if type(found) is not FileTree or status_of(found) == status_of(known):
        return tree
    again = with_status(found, *status_of(known))
    return put(tree, segments, again, known.modified_at) if segments else again


def with_paths(tree: FileTree, other: FileTree, paths: Iterable[str]) -> FileTree:
    """Return a tree with the entries at `paths`, and everything in them, replaced with those of another tree."""
    for path in paths:
        segments = tuple(path.strip("/").split("/")) if path.strip("/") else ()
        if not segments:
            return other
        node = find(other, segments)
        if node is None:
            if find(tree, segments) is not None:
                tree = remove(tree, segments, tree.modified_at)
        elif find(tree, segments) is not node:
            tree = put(tree, segments, node, tree.modified_at)
    return tree


def without_whiteouts(tree: FileTree) -> FileTree:
    """Return a layer's tree without whiteouts. O(entries)."""
    hidden = [path for path, node in walk(tree) if type(node) is tuple and node[CONTENT] is WHITEOUT]
    for path in hidden:
        tree = remove(tree, tuple(path[1:].split("/")), tree.modified_at)
    return tree
