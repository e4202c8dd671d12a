"""Copy-up and whiteouts: extra events around a change in an overlay, so that the merged view is correct afterwards.

Before the change, entries that it modifies are copied up (`EntryFound`) along with their parent directories, and a
directory that replaces a deleted one hides the lower entries. After it, removed entries are hidden (`EntryHidden`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from hashlib import sha256
from typing import cast

from weakfs.backends.deep_recursion import Steps, run
from weakfs.backends.overlay.layers import Layers, bare, is_untouched, nested
from weakfs.filesystem import FilesystemPrimitives
from weakfs.reducers.apply import on_entry_found, segments_of
from weakfs.reducers.events import (
    DirectoryMade,
    EntryCopied,
    EntryDeleted,
    EntryFound,
    EntryHidden,
    EntryMoved,
    Event,
    LowerEntry,
    ModeChanged,
)
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import (
    FileTree,
    Node,
    Segments,
    find,
    is_whiteout,
    path_of,
    tree_of,
)
from weakfs.session.blobs.blob import Stored, digest_of
from weakfs.session.blobs.rope import Rope
from weakfs.session.interruption import check_interrupted

# How many bytes of a lower file are read at a time.
PIECE = 1 << 20


def before(layers: Layers, event: Event) -> list[Event]:
    """Return the events to dispatch before a change."""
    if isinstance(event, EntryMoved | EntryCopied):
        source, destination = segments_of(event.source), segments_of(event.destination)
        found = [*_way(layers, source), *_copied(layers, source, with_contents=True)]
        # Both paths may be below directories that are copied up for the source.
        layers = Layers(reduce(on_entry_found, found, layers.upper), layers.lower)
        found += _way(layers, destination)
        if layers.held(destination) is None:
            found += _copied(layers, destination, with_contents=False)
        return [*found, *_revealed(layers, destination[:-1], event.at)]
    segments = segments_of(cast("DirectoryMade", event).path)
    if isinstance(event, DirectoryMade):
        return [*_way(layers, segments), *_revealed(layers, segments, event.at)]
    if isinstance(event, EntryDeleted):
        return list(_way(layers, segments))
    if not segments:
        return [*_way(layers, ("",))] if isinstance(event, ModeChanged) else []
    found = [*_way(layers, segments), *_copied(layers, segments, with_contents=False)]
    return [*found, *_revealed(layers, segments[:-1], event.at)]


def after(now: Layers, event: Event) -> list[Event]:
    """Return the events to dispatch after a change that resulted in these layers."""
    hidden: list[Event] = []
    if isinstance(event, EntryDeleted | EntryMoved):
        gone = segments_of(event.path if isinstance(event, EntryDeleted) else event.source)
        if now.hides(gone) and now.held(gone) is None:
            hidden.append(_hidden(now, gone, event.at))
    if isinstance(event, EntryMoved | EntryCopied):
        destination = segments_of(event.destination)
        hidden += _foreign(now, destination, event.at)
    return hidden


def _way(layers: Layers, segments: Segments) -> Iterator[EntryFound]:
    """Copy up the parent directories of a path, nested in each other, each with only its own bits and times."""
    above, start = layers.upper, 1
    if is_untouched(above):
        above = bare(cast(FileTree, layers.lower.lookup(())))
        if not is_untouched(above):
            yield EntryFound("/", above, above.modified_at)
    for name in segments[:-1]:
        held = above._entry(name)
        if held is None:
            break
        if type(held) is not FileTree:
            return
        above, start = held, start + 1
    directories: list[FileTree] = []
    for end in range(start, len(segments)):
        node = layers.lower.lookup(segments[:end])
        if type(node) is not FileTree:
            break
        directories.append(bare(node))
    if directories:
        names = segments[start - 1 : start - 1 + len(directories)]
        yield EntryFound(path_of(segments[:start]), nested(names, directories), above.modified_at)


def _copied(layers: Layers, segments: Segments, *, with_contents: bool) -> Iterator[EntryFound]:
    """Copy up the lower entry at a path, except where the upper tree has its own entries."""
    held = layers.held(segments)
    if held is None:
        node = layers.below(segments)
        if node is not None:
            above = layers.held(segments[:-1])
            if type(above) is not FileTree or is_untouched(layers.upper):
                above = layers.lower.lookup(segments[:-1])
            whole = (
                _whole(layers.lower, segments, node)
                if with_contents
                else _without_children(layers.lower, segments, node)
            )
            yield EntryFound(path_of(segments), tree_of({segments[-1]: whole}), cast(FileTree, above).modified_at)
        return
    stack = [(segments, held)] if with_contents and type(held) is FileTree else []
    while stack:
        here, own = stack.pop()
        if type(layers.below(here)) is not FileTree:
            continue
        for name, node in sorted(layers.lower.entries(here), key=_by_name):
            below, mine = (*here, name), own._entry(name)
            if mine is None:
                whole = _whole(layers.lower, below, node)
                yield EntryFound(path_of(below), tree_of({name: whole}), own.modified_at)
            elif type(mine) is FileTree:
                stack.append((below, mine))


def _without_children(lower: FilesystemPrimitives, segments: Segments, node: Node) -> Node:
    return bare(node) if type(node) is FileTree else _with_content(lower, segments, node)


def _whole(lower: FilesystemPrimitives, segments: Segments, node: Node) -> Node:
    return run(_wholly(lower, segments, node))


def _wholly(lower: FilesystemPrimitives, segments: Segments, node: Node) -> Steps[Node]:
    if type(node) is not FileTree:
        return _with_content(lower, segments, node)
    entries: dict[str, Node] = {}
    for name, child in lower.entries(segments):
        entries[name] = yield _wholly(lower, (*segments, name), child)
    return tree_of(entries, mode=node.mode, modified_at=node.modified_at, created_at=node.created_at)


def _with_content(lower: FilesystemPrimitives, segments: Segments, leaf: Leaf) -> Leaf:
    """Return a leaf whose content no longer depends on the lower file."""
    if not leaves.is_file(leaf):
        return leaf
    content = _own_content(lower, path_of(segments), leaf)
    return leaves.file(content, mode=leaf[leaves.MODE], at=leaf[leaves.MODIFIED_AT], created_at=leaf[leaves.CREATED_AT])


def _own_content(lower: FilesystemPrimitives, path: str, leaf: Leaf) -> bytes | Rope:
    """Return the content of a lower file: the same object if it is in memory, the pieces of a large file on a disk."""
    content = leaf[leaves.CONTENT]
    if isinstance(content, Rope) and content.is_in_memory:
        return content
    if isinstance(content, bytes | Rope | Stored) or leaves.size_of(leaf) <= PIECE:
        return lower.content(path, leaf)
    with lower.content_stream(path, leaf) as stream:
        read: bytes | Rope = stream.read(PIECE)
        while piece := stream.read(PIECE):
            check_interrupted()
            read = Rope(read, piece)
    return read


def _revealed(layers: Layers, segments: Segments, at: int) -> Iterator[EntryHidden]:
    """Hide the lower entries of a deleted directory before a new one takes its place."""
    for depth in range(1, len(segments) + 1):
        here = segments[:depth]
        held = layers.held(here)
        if held is None:
            return
        if not is_whiteout(held) or type(layers.lower.lookup(here)) is not FileTree:
            continue
        onward = segments[depth] if depth < len(segments) else None
        for name, node in sorted(layers.lower.entries(here), key=_by_name):
            if name != onward or type(node) is not FileTree:
                yield _hidden(layers, (*here, name), at)


def _foreign(layers: Layers, segments: Segments, at: int) -> Iterator[EntryHidden]:
    """Hide lower entries that a directory, which was put here as a whole, does not contain."""
    stack = [(segments, find(layers.upper, segments))]
    while stack:
        here, held = stack.pop()
        if type(held) is not FileTree or type(layers.below(here)) is not FileTree:
            continue
        for name, _ in sorted(layers.lower.entries(here), key=_by_name):
            own = held._entry(name)
            if own is None:
                yield _hidden(layers, (*here, name), at)
            stack.append(((*here, name), own))


def _by_name(entry: tuple[str, Node]) -> str:
    return entry[0]


def _hidden(layers: Layers, segments: Segments, at: int) -> EntryHidden:
    node = layers.lower.lookup(segments)
    return EntryHidden(path_of(segments), at, None if node is None else describe_entry(layers.lower, segments, node))


def describe_entry(
    lower: FilesystemPrimitives, segments: Segments, node: Node, content: bytes | None = None
) -> LowerEntry:
    """Describe a lower entry. A file is identified by `content` if given, otherwise by its status."""
    path = path_of(segments)
    if type(node) is FileTree:
        digest = sha256()
        for one in _statuses_below(lower, segments):
            digest.update(one)
        return LowerEntry(path, "directory", 0, node.modified_at, node.mode, digest.hexdigest())
    size, at, mode = leaves.size_of(node), node[leaves.MODIFIED_AT], node[leaves.MODE]
    content_digest = None if content is None else digest_of(content).hex()
    if leaves.is_link(node):
        content_digest = digest_of(leaves.content_of(node)).hex()
    return LowerEntry(path, leaves.kind_of(node), size, at, mode, content_digest)


def _statuses_below(lower: FilesystemPrimitives, segments: Segments) -> Iterator[bytes]:
    """Yield the status of everything in a directory, encoded for hashing."""
    stack = [segments]
    while stack:
        here = stack.pop()
        for name, node in sorted(lower.entries(here), key=_by_name):
            if type(node) is FileTree:
                stack.append((*here, name))
                line = f"directory {node.mode} {path_of((*here, name))}"
            else:
                line = f"{leaves.kind_of(node)} {leaves.size_of(node)} {node[1]} {node[2]} {path_of((*here, name))}"
            yield line.encode() + b"\0"
