"""Events for the changes that a program made to a tree, computed from the trees before and after."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
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
from weakfs.reducers.tree.node import FileTree, Node, Segments, find, put, tree_of, walk, with_mode

SET_ID = S_ISUID | S_ISGID


def events_between(before: FileTree, after: FileTree, *, at: int, most: int | None = None) -> Iterator[Event]:
    """Yield the events that turn `before` into `after`: deletions first, then additions, both sorted by path.

    A file is written at its own modification time. Contents larger than `most` bytes, and entries for which there is
    no other event, such as FIFOs, become `EntryPut` events.
    """
    changes = sorted(differences(before, after), key=lambda change: change[0])
    for path, old, new in changes:
        if old is not None and (new is None or not _stays(old, new)):
            yield EntryDeleted(path, at)
    for path, old, new in changes:
        if new is not None:
            yield from _creation_events(path, old if old is not None and _stays(old, new) else None, new, at, most)
    if before.mode != after.mode:
        yield ModeChanged("/", after.mode, at)


def _stays(old: Node, new: Node) -> bool:
    """Return whether an entry can become another without being deleted first."""
    if type(old) is FileTree or type(new) is FileTree:
        return type(old) is type(new)
    return leaves.is_file(old) and leaves.is_file(new)


def _creation_events(path: str, old: Node | None, new: Node, at: int, most: int | None) -> Iterator[Event]:
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
    """Return `after` without set-uid and set-gid bits that a program set, and the paths that had them, sorted.

    A file that already had the bits keeps them if its content is unchanged. A directory keeps those that it had, and a
    new one has the set-group-ID bit if its parent keeps it: Linux sets it on every directory made there.
    """
    found: list[str] = []
    if after.mode & SET_ID & ~before.mode:
        found.append("/")
        after = with_mode(after, after.mode & (before.mode | ~SET_ID))
    changed = [
        (path, old, node) for path, old, new in differences(before, after) for path, old, node in _all(path, old, new)
    ]
    # A directory comes before what is in it.
    for path, old, node in sorted(changed, key=itemgetter(0)):
        mode = _mode(node)
        if not mode & SET_ID or (type(node) is tuple and leaves.is_link(node)):
            continue
        segments = segments_of(path)
        above = cast(FileTree, find(after, segments[:-1]))
        allowed = _allowed_set_id(old, node, above)
        if mode & SET_ID & ~allowed:
            found.append(path)
            less = mode & (allowed | ~SET_ID)
            stripped = with_mode(node, less) if type(node) is FileTree else leaves.with_mode(node, less)
            after = put(after, segments, stripped, above.modified_at)
    return after, tuple(sorted(found))


def _all(path: str, old: Node | None, new: Node | None) -> Iterator[tuple[str, Node | None, Node]]:
    """Yield a changed entry, and everything in a new directory."""
    if new is not None:
        yield path, old, new
    if type(new) is FileTree and type(old) is not FileTree:
        yield from ((below, None, node) for below, node in walk(new, path))


def _allowed_set_id(old: Node | None, new: Node, above: FileTree) -> int:
    """Return the set-uid and set-gid bits that a changed entry may have."""
    if type(new) is FileTree:
        return old.mode if type(old) is FileTree else above.mode & S_ISGID
    if type(old) is not tuple or new[leaves.MODE] & SET_ID & ~old[leaves.MODE] or not _hold_the_same(old, new):
        return 0
    return old[leaves.MODE]


def _hold_the_same(old: Leaf, new: Leaf) -> bool:
    return leaves.is_file(old) and leaves.is_file(new) and leaves.same_content(old, new)


def _mode(node: Node) -> int:
    return node.mode if type(node) is FileTree else node[leaves.MODE]


def mode_at(tree: FileTree, segments: Segments) -> int:
    """Return the permission bits of the entry at a path."""
    return _mode(cast(Node, find(tree, segments)))


def placed_below(event: Event, directory: str) -> Event:
    """Return an event of one path with that path moved below a directory."""
    # Every event made in this module has exactly one path.
    one: Any = event
    if directory == "/":
        return event
    path = directory + one.path if one.path != "/" else directory
    placed: Event = attrs.evolve(one, path=path)
    return placed
