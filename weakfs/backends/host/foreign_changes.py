"""Changes that other programs made: found on disk before an event, and recorded in the session.

While a program works for a call, its changes since the call began are recorded as changes by that call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from weakfs.backends.host.root import HostRoot
from weakfs.reducers.apply import on_entry_found, segments_of
from weakfs.reducers.events import EntryCopied, EntryDeleted, EntryFound, EntryMoved, Event
from weakfs.reducers.external_trees import external_trees
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Node, Segments, find, path_of, put, remove, tree_of, walk
from weakfs.session import Session
from weakfs.snapshots.scan.read_back import events_between

# Events hold contents up to this size; larger ones go into the store.
SMALL = 1 << 20


def found_before(
    root: HostRoot, session: Session, event: Any, places: list[Segments], filesystem: str
) -> list[EntryFound]:
    """Return the events that describe to the session the entries at the paths of `event`, before it is applied."""
    known = external_trees(session).tree(filesystem)
    paths = [event.source, event.destination] if isinstance(event, EntryMoved | EntryCopied) else [event.path]
    as_whole = isinstance(event, EntryMoved | EntryCopied | EntryDeleted)
    found: list[EntryFound] = []
    for path, place in zip(paths, places, strict=True):
        if path == "/" or place[:1] == ("..",):
            continue
        replaced = _replaced_above(root, known, path, place, session.now(), filesystem)
        if replaced is not None:
            found.append(replaced)
            known = on_entry_found(known, replaced)
        there = find(known, segments_of(path))
        one = _found(root, place, there, as_whole=as_whole)
        if there is None:
            found += _found_above(root, known, path, place, session.now(), filesystem, is_new=one is None)
        if one is not None:
            found.append(EntryFound(path, one, session.now(), filesystem))
    return found


def by_program(found: list[EntryFound], known: FileTree, expected: FileTree) -> Iterator[Event]:
    """Yield the events for entries that were found while a program works for a call.

    `expected` are the files when the call began, with the changes recorded since. Differences from them were made by
    the program.
    """
    for seen in found:
        segments = segments_of(seen.path)
        node, was, there = find(seen.tree, segments[-1:]), find(expected, segments), find(known, segments)
        if node is was or (node is not None and was is not None and looks_like(node, was)):
            yield seen
            continue
        if was is not None and (there is None or not looks_like(was, there)):
            yield EntryFound(seen.path, tree_of({segments[-1]: was}), seen.at, seen.filesystem)
        after = remove(expected, segments, seen.at) if node is None else put(expected, segments, node, seen.at)
        for event in events_between(expected, after, at=seen.at, most=None):
            yield attrs.evolve(event, filesystem=seen.filesystem)


def _replaced_above(
    root: HostRoot, known: FileTree, path: str, place: Segments, at: int, filesystem: str
) -> EntryFound | None:
    """Return the event for the topmost entry above a path that others removed, or replaced with a directory."""
    above, disk = segments_of(path)[:-1], root.directory
    # A path through a link leads to other directories.
    if place[:-1] != above:
        return None
    depths = range(1, len(above) + 1)
    replaced = next((depth for depth in depths if type(find(known, above[:depth])) is tuple), 0)
    if disk.status(above) is None:
        # The directory may be there again by now.
        removed = next((depth for depth in depths if disk.status(above[:depth]) is None), 0)
        if removed and find(known, above[:removed]) is not None:
            replaced = min(removed, replaced or removed)
    node = disk.node(above[:replaced]) if replaced else None
    if not replaced or type(node) is tuple:
        return None
    found = EMPTY_TREE if node is None else tree_of({above[replaced - 1]: node})
    return EntryFound(path_of(above[:replaced]), found, at, filesystem)


def _found_above(
    root: HostRoot, known: FileTree, path: str, place: Segments, at: int, filesystem: str, *, is_new: bool
) -> Iterator[EntryFound]:
    """Yield the events for the directories above an entry that the session does not know, the topmost one first.

    Without an event, the session assumes that a directory has the permission bits of a new one, so directories with
    these bits need no event. The nearest directory above a new entry is always described: otherwise it would seem to
    have been created along with the entry, and would be removed with it.
    """
    above = segments_of(path)[:-1]
    unknown: list[EntryFound] = []
    for depth in range(len(above), 0, -1):
        if find(known, above[:depth]) is not None:
            break
        here = place[: depth - len(above) - 1]
        node = root.directory.node(here)
        if type(node) is not FileTree:
            continue
        # A path through a link leads to other directories.
        if is_new or (here == above[:depth] and node.mode != leaves.DIRECTORY_MODE):
            unknown.append(EntryFound(path_of(above[:depth]), tree_of({above[depth - 1]: node}), at, filesystem))
        is_new = False
    yield from reversed(unknown)


def _found(root: HostRoot, place: Segments, known: Node | None, *, as_whole: bool) -> FileTree | None:
    """Return the entry at a path as a tree with only that entry; `None` if the session already knows it."""
    directory = root.directory
    node = directory.node(place)
    if type(node) is FileTree:
        if not as_whole:
            # Only the permission bits of the directory change, so its known entries are kept.
            return None if _same_bits(known, node) else tree_of({place[-1]: node})
        whole = directory.subtree(place)
        if type(known) is FileTree and type(whole) is FileTree and _looks_like_all(whole, known):
            return None
    elif node is None:
        return None if known is None else EMPTY_TREE
    elif type(known) is tuple and looks_like(node, known):
        created = directory.born_at(place, node[leaves.MODIFIED_AT])
        if as_whole or not leaves.is_file(node) or created >= known[leaves.CREATED_AT]:
            return None
        # Scans do not read birth times, and an edit creates a new file, so the known creation time is corrected.
        content, mode, at, _, digest = known
        return tree_of({place[-1]: (content, mode, at, created, digest)})
    elif leaves.is_link(node) or leaves.is_special(node):
        return tree_of({place[-1]: node})
    elif leaves.size_of(node) <= SMALL:
        content = leaves.content_of(node)
        at = node[leaves.MODIFIED_AT]
        created = directory.born_at(place, at)
        return tree_of({place[-1]: leaves.file(content, mode=node[leaves.MODE], at=at, created_at=created)})
    return root.store_entry(place)


def looks_like(one: Node, other: Node) -> bool:
    """Return whether two entries have the same kind, size, times and permission bits; contents are not read.

    The times of directories are not compared: they change with every entry.
    """
    if type(one) is not tuple or type(other) is not tuple:
        return _same_bits(one, other)
    return (
        leaves.kind_of(one) == leaves.kind_of(other)
        and leaves.size_of(one) == leaves.size_of(other)
        and one[leaves.MODIFIED_AT] == other[leaves.MODIFIED_AT]
        and (leaves.is_link(one) or one[leaves.MODE] == other[leaves.MODE])
    )


def _same_bits(one: Node | None, other: Node) -> bool:
    return type(one) is FileTree and type(other) is FileTree and one.mode == other.mode


def _looks_like_all(one: FileTree, other: FileTree) -> bool:
    mine, known = dict(walk(one)), dict(walk(other))
    return (
        _same_bits(one, other)
        and mine.keys() == known.keys()
        and all(looks_like(node, known[path]) for path, node in mine.items())
    )
