"""The reducers of file events: event + tree -> tree. Pure: no clock, no I/O; the same tree if nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from weakfs.reducers import events as e
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import (
    EMPTY_TREE,
    FileTree,
    Node,
    Segments,
    find,
    is_whiteout,
    put,
    rebuilt,
    remove,
    status_of,
    way_to,
    with_mode,
    with_status,
)
from weakfs.session.blobs.rope import Piece, Rope, with_pieces


def segments_of(path: str) -> Segments:
    """Split a canonical path into its segments; the root has none."""
    return tuple(path[1:].split("/")) if path != "/" else ()


def _unhidden(tree: FileTree, segments: Segments, at: int) -> FileTree:
    """Remove a whiteout: the entry that replaces it is new, so the directory counts as modified."""
    return remove(tree, segments, at) if is_whiteout(find(tree, segments)) else tree


def on_file_written(tree: FileTree, event: e.FileWritten) -> FileTree:
    at, mode = event.at, event.mode
    way = way_to(tree, event.path[1:].split("/"), at)
    old = way[-1][2]
    if type(old) is not tuple or type(old[0]) in leaves.NO_FILE:
        if old is not None and is_whiteout(old):
            way = way_to(_unhidden(tree, segments_of(event.path), at), segments_of(event.path), at)
        new = leaves.file(event.content, mode=leaves.FILE_MODE if mode is None else mode, at=at)
    else:
        new = leaves.with_content(old, event.content, at)
        if mode is not None:
            new = leaves.with_mode(new, mode)
    return rebuilt(way, new, at)


def on_file_appended(tree: FileTree, event: e.FileAppended) -> FileTree:
    way = way_to(tree, segments_of(event.path), event.at)
    old = way[-1][2]
    if type(old) is not tuple or not leaves.is_file(old):
        return on_file_written(tree, e.FileWritten(event.path, event.tail, event.at))
    content = Rope(cast("bytes | Rope", old[leaves.CONTENT]), event.tail)
    return rebuilt(way, leaves.with_content(old, content, event.at), event.at)


def on_file_spliced(tree: FileTree, event: e.FileSpliced) -> FileTree:
    way = way_to(tree, segments_of(event.path), event.at)
    old = way[-1][2]
    if type(old) is not tuple or not leaves.is_file(old):
        return tree
    return rebuilt(way, spliced(old, event.pieces, event.at), event.at)


def spliced(leaf: Leaf, pieces: Iterable[Piece], at: int) -> Leaf:
    """Return a file with pieces of its content replaced."""
    return leaves.with_content(leaf, with_pieces(leaves.content_of(leaf), pieces), at)


def on_directory_made(tree: FileTree, event: e.DirectoryMade) -> FileTree:
    segments = segments_of(event.path)
    if type(find(tree, segments)) is FileTree:
        return tree
    made = FileTree({}, (), leaves.DIRECTORY_MODE, event.at, event.at)
    return put(_unhidden(tree, segments, event.at), segments, made, event.at)


def on_entry_deleted(tree: FileTree, event: e.EntryDeleted) -> FileTree:
    return remove(tree, segments_of(event.path), event.at)


def on_entry_moved(tree: FileTree, event: e.EntryMoved) -> FileTree:
    source, destination = segments_of(event.source), segments_of(event.destination)
    node = find(tree, source)
    if node is None or source == destination:
        return tree
    return put(_unhidden(remove(tree, source, event.at), destination, event.at), destination, node, event.at)


def on_entry_copied(tree: FileTree, event: e.EntryCopied) -> FileTree:
    source, destination = segments_of(event.source), segments_of(event.destination)
    node = find(tree, source)
    if node is None or source == destination:
        return tree
    return put(_unhidden(tree, destination, event.at), destination, newborn(node, event.at), event.at)


def newborn(node: Node, at: int) -> Node:
    """Return the node for a copy: a file is created and modified at `at`; the contents of a directory are shared."""
    if type(node) is FileTree:
        return with_status(node, node.mode, at, at)
    return (node[0], node[1], at, at, node[4])


def on_mode_changed(tree: FileTree, event: e.ModeChanged) -> FileTree:
    segments = segments_of(event.path)
    node = find(tree, segments)
    if node is None:
        return tree
    if type(node) is FileTree:
        if node.mode == event.mode:
            return tree
        changed = with_mode(node, event.mode)
        return put(tree, segments, changed, event.at) if segments else changed
    # A link has no permission bits of its own.
    if leaves.is_link(node) or node[leaves.MODE] == event.mode:
        return tree
    return put(tree, segments, leaves.with_mode(node, event.mode), event.at)


def on_link_made(tree: FileTree, event: e.LinkMade) -> FileTree:
    segments = segments_of(event.path)
    return put(_unhidden(tree, segments, event.at), segments, leaves.link(event.target, at=event.at), event.at)


def on_tree_mounted(tree: FileTree, event: e.TreeMounted) -> FileTree:
    segments = segments_of(event.path)
    return put(tree, segments, event.tree, event.at) if segments else event.tree


def on_tree_restored(tree: FileTree, event: e.TreeRestored | e.TreeSeen) -> FileTree:
    return event.tree


def on_entry_found(tree: FileTree, event: e.EntryFound) -> FileTree:
    """Add an entry of an external filesystem as it was found.

    If a directory's contents are already known, finding it without entries only sets its permission bits and times.
    """
    segments = segments_of(event.path)
    found = event.tree._entry(segments[-1]) if segments else event.tree
    if found is None:
        return remove(tree, segments, event.at)
    existing = find(tree, segments)
    if type(found) is FileTree and not found.node_count and type(existing) is FileTree:
        found = with_status(existing, *status_of(found))
    return put(tree, segments, found, event.at) if segments else cast(FileTree, found)


def on_entry_put(tree: FileTree, event: e.EntryPut) -> FileTree:
    segments = segments_of(event.path)
    return put(tree, segments, event.tree._entry(segments[-1]), event.at)


def on_entry_hidden(tree: FileTree, event: e.EntryHidden) -> FileTree:
    segments = segments_of(event.path)
    return put(tree, segments, leaves.special(leaves.WHITEOUT, at=event.at), event.at)


def on_layer_emptied(tree: FileTree, event: e.LayerEmptied) -> FileTree:
    return EMPTY_TREE


REDUCERS: dict[type, Callable[[FileTree, Any], FileTree]] = {
    e.FileWritten: on_file_written,
    e.FileAppended: on_file_appended,
    e.FileSpliced: on_file_spliced,
    e.DirectoryMade: on_directory_made,
    e.EntryDeleted: on_entry_deleted,
    e.EntryMoved: on_entry_moved,
    e.EntryCopied: on_entry_copied,
    e.ModeChanged: on_mode_changed,
    e.LinkMade: on_link_made,
    e.TreeMounted: on_tree_mounted,
    e.TreeRestored: on_tree_restored,
    e.EntryFound: on_entry_found,
    e.EntryPut: on_entry_put,
    e.TreeSeen: on_tree_restored,
    e.EntryHidden: on_entry_hidden,
    e.LayerEmptied: on_layer_emptied,
}


def reduce(tree: FileTree | None, event: e.Event) -> FileTree:
    """Apply one event to a tree; `None` means the empty tree."""
    return REDUCERS[type(event)](EMPTY_TREE if tree is None else tree, event)
