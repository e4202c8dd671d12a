"""Events for the changes that a program made to a tree, computed from the trees before and after."""

from __future__ import annotations

from collections.abc import Iterator
from stat import S_ISGID, S_ISUID
from typing import Any, cast

import attrs

from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import (
    DirectoryMade,
    EntryDeleted,
    EntryPut,
    Event,
    FileWritten,
    LinkMade,
    ModeChanged,
)
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.diff import differences
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import FileTree, Node, Segments, find, put, tree_of, walk

SET_ID = S_ISUID | S_ISGID


def events_between(before: FileTree, after: FileTree, *, at: int, most: int | None = None) -> Iterator[Event]:
    """Yield the events that turn `before` into `after`: deletions first, then additions, each by path.

    A file is written at its own modification time. Contents larger than `most` bytes, and entries for which there is
    no other event, such as FIFOs, become `EntryPut` events.
    """
    changes = sorted(differences(before, after), key=lambda change: change[0])
    for path, old, new in changes:
        if old is not None and (new is None or not _stays(old, new)):
            yield EntryDeleted(path, at)
    for path, old, new in changes:
        if new is not None:
            yield from _made(path, old if old is not None and _stays(old, new) else None, new, at, most)
    if before.mode != after.mode:
        yield ModeChanged("/", after.mode, at)


def _stays(old: Node, new: Node) -> bool:
    """Return whether an entry can become another without being deleted first."""
    if type(old) is FileTree or type(new) is FileTree:
        return type(old) is type(new)
    return leaves.is_file(old) and leaves.is_file(new)


def _made(path: str, old: Node | None, new: Node, at: int, most: int | None) -> Iterator[Event]:
    stack: list[tuple[str, Node | None, Node]] = [(path, old, new)]
    while stack:
        here, was, node = stack.pop()
        if type(node) is not FileTree:
            yield from _made_leaf(here, was if type(was) is tuple else None, node, most)
            continue
        if was is None:
            yield DirectoryMade(here, node.modified_at)
            below = [(f"{here}/{name}", None, child) for name, child in maps.items(node._children)]
            stack += sorted(below, reverse=True)
        if node.mode != (was.mode if type(was) is FileTree else leaves.DIRECTORY_MODE):
            yield ModeChanged(here, node.mode, at)


def _made_leaf(path: str, old: Leaf | None, new: Leaf, most: int | None) -> Iterator[Event]:
    content, mode, at = new[leaves.CONTENT], new[leaves.MODE], new[leaves.MODIFIED_AT]
    if isinstance(content, str):
        yield LinkMade(path, content, at)
    elif leaves.is_special(new) or (most is not None and len(content) > most):
        yield EntryPut(path, tree_of({path.rpartition("/")[2]: new}), at)
    elif old is not None and leaves.same_content(old, new):
        yield ModeChanged(path, mode, at)
    else:
        usual = leaves.FILE_MODE if old is None else old[leaves.MODE]
        yield FileWritten(path, leaves.content_of(new), at, None if mode == usual else mode)


def without_set_id(before: FileTree, after: FileTree) -> tuple[FileTree, tuple[str, ...]]:
    """Return `after` without set-uid and set-gid bits that a program set on files, and the paths of those files.

    A file that already had the bits keeps them if its content is unchanged.
    """
    found: list[str] = []
    for path, old, new in differences(before, after):
        for below, node in [(path, new), *(walk(new, path) if type(new) is FileTree else ())]:
            if type(node) is not tuple or leaves.is_link(node) or not node[leaves.MODE] & SET_ID:
                continue
            if type(old) is tuple and node[leaves.MODE] & SET_ID & ~old[leaves.MODE] == 0 and _hold_the_same(old, node):
                continue
            found.append(below)
            segments = segments_of(below)
            above = cast(FileTree, find(after, segments[:-1]))
            after = put(after, segments, leaves.with_mode(node, node[leaves.MODE] & ~SET_ID), above.modified_at)
    return after, tuple(sorted(found))


def _hold_the_same(old: Leaf, new: Leaf) -> bool:
    return leaves.is_file(old) and leaves.is_file(new) and leaves.same_content(old, new)


def mode_at(tree: FileTree, segments: Segments) -> int:
    """Return the permission bits of the file at a path."""
    return cast(Leaf, find(tree, segments))[leaves.MODE]


def placed_below(event: Event, directory: str) -> Event:
    """Return an event of one path with that path moved below a directory."""
    # Every event made in this module has exactly one path.
    one: Any = event
    if directory == "/":
        return event
    path = directory + one.path if one.path != "/" else directory
    placed: Event = attrs.evolve(one, path=path)
    return placed
