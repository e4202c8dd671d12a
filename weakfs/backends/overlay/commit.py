"""Committing an overlay to its lower filesystem: conflicts are found first, then all changes are written or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from errno import EBUSY
from typing import cast

from weakfs.backends.overlay.copy_up import Layers, describe_entry
from weakfs.backends.overlay.layers import is_whiteout
from weakfs.filesystem import BaseFilesystem, Filesystem
from weakfs.filesystem.errors import fault
from weakfs.reducers import FileTree, LowerEntry
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import EntryPut
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.diff import differences, equal
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import Node, find, path_of, tree_of, walk
from weakfs.session import Session, SessionError

# The maximum number of paths named in a message. The others are counted.
NAMED = 20


def conflicts(
    layers: Layers, found: FileTree, read: Mapping[str, LowerEntry], below: FileTree, now: FileTree
) -> list[str]:
    """Return the paths that changed below since they were read, copied up or hidden, unless they are now as wanted."""
    changed = {
        *_read_otherwise(layers, read),
        *_found_otherwise(layers, found, below),
        *_new(layers, found, read, below),
    }
    return sorted(path for path in changed if not _is_as_wanted(layers, path, below, now))


def refuse_conflicts(paths: list[str]) -> None:
    """Raise `OSError` (EBUSY) naming the paths, if there are any."""
    if not paths:
        return
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    names = ", ".join(map(repr, paths[:NAMED])) + more
    raise fault(
        OSError,
        EBUSY,
        f"cannot commit the overlay: {names} changed below since it was read here; discard the overlay's changes, or "
        f"restore the previous version below",
    )


def _is_as_wanted(layers: Layers, path: str, below: FileTree, now: FileTree) -> bool:
    """Return whether the lower filesystem already has what the overlay would write."""
    segments = segments_of(path)
    return layers.held(segments) is not None and equal(find(below, segments), find(now, segments))


def _read_otherwise(layers: Layers, read: Mapping[str, LowerEntry]) -> Iterator[str]:
    for path, entry in read.items():
        segments = segments_of(path)
        node = layers.lower.lookup(segments)
        if node is None:
            yield path
            continue
        content: bytes | None = None
        if type(node) is tuple and leaves.is_file(node) and entry.digest is not None:
            content = layers.lower.content(path, node)
        again = describe_entry(layers.lower, segments, node, content)
        exact = entry.digest is not None
        descriptions = [
            (one.kind, one.mode, one.digest, *(() if exact else (one.size, one.modified_ns))) for one in (entry, again)
        ]
        if descriptions[0] != descriptions[1]:
            yield path


def _found_otherwise(layers: Layers, found: FileTree, below: FileTree) -> Iterator[str]:
    for path, node in walk(found):
        if layers.held(segments_of(path)) is None:
            continue
        there = find(below, segments_of(path))
        if type(node) is FileTree:
            if type(there) is not FileTree or there.mode != node.mode:
                yield path
        elif type(there) is not tuple or not leaves.same(node, there):
            yield path


def _new(layers: Layers, found: FileTree, read: Mapping[str, LowerEntry], below: FileTree) -> Iterator[str]:
    """Yield the paths that the overlay created but that now also exist in the lower layer."""
    for path, node in walk(layers.upper):
        if type(node) is FileTree or is_whiteout(node):
            continue
        segments = segments_of(path)
        if find(found, segments) is None and find(below, segments) is not None and not _was_hidden(read, segments):
            yield path


def _was_hidden(read: Mapping[str, LowerEntry], segments: tuple[str, ...]) -> bool:
    return any(path_of(segments[:depth]) in read for depth in range(1, len(segments) + 1))


def refuse_inside_transaction(lower: Filesystem, session: Session) -> None:
    """Raise `SessionError` if a rollback of the current transaction could not undo writes to the lower filesystem."""
    if getattr(lower, "session", None) is not session and session.in_transaction:
        raise SessionError(
            f"cannot commit the overlay inside a transaction of session {session.session_id!r}: a rollback could not "
            f"undo the writes to the lower filesystem; commit after it, or give the lower filesystem the same session"
        )


def write_down(lower: Filesystem, session: Session, below: FileTree, now: FileTree) -> None:
    """Make the lower filesystem match the overlay; if anything fails, it is left unchanged."""
    with _all_or_nothing(lower, session):
        changes = sorted(differences(below, now), key=lambda change: change[0])
        for path, old, new in changes:
            if old is not None and (new is None or type(old) is not type(new) or _is_other_kind(old, new)):
                lower.delete(path, recursive=True)
        for path, old, new in changes:
            if new is not None:
                _place(lower, path, old, new)
        if below.mode != now.mode:
            lower.chmod("/", now.mode)


def _all_or_nothing(lower: Filesystem, session: Session) -> AbstractContextManager[object]:
    own = getattr(lower, "session", None)
    if own is session:
        # The current transaction covers the lower filesystem as well.
        return nullcontext()
    if not isinstance(own, Session):
        raise fault(
            PermissionError, EBUSY, f"cannot commit the overlay: {lower!r} has no session that could undo the writes"
        )
    return own.transaction(cause="overlay commit")


def _is_other_kind(old: Node, new: Node) -> bool:
    if type(old) is not tuple or type(new) is not tuple:
        return False
    return leaves.kind_of(old) != leaves.kind_of(new) or not leaves.is_file(new)


def _place(lower: Filesystem, path: str, old: Node | None, new: Node) -> None:
    if type(new) is FileTree:
        if type(old) is not FileTree:
            lower.mkdir(path)
            for below, node in walk(new, path):
                if type(node) is FileTree:
                    lower.mkdir(below)
                    _set_mode(lower, below, leaves.DIRECTORY_MODE, node.mode)
                else:
                    _place_leaf(lower, below, None, node)
        _set_mode(lower, path, old.mode if type(old) is FileTree else leaves.DIRECTORY_MODE, new.mode)
    else:
        _place_leaf(lower, path, old if type(old) is tuple and not _is_other_kind(old, new) else None, new)


def _place_leaf(lower: Filesystem, path: str, old: Leaf | None, new: Leaf) -> None:
    if leaves.is_link(new):
        lower.symlink(cast(str, new[leaves.CONTENT]), path)
    elif leaves.is_special(new):
        base = cast(BaseFilesystem, lower)
        base._refuse_if_read_only("write", path)
        base.apply(EntryPut(path, tree_of({segments_of(path)[-1]: new}), base.now()))
    else:
        if old is None or not leaves.same_content(old, new):
            lower.write_bytes(path, leaves.content_of(new))
        _set_mode(lower, path, leaves.FILE_MODE if old is None else old[leaves.MODE], new[leaves.MODE])


def _set_mode(lower: Filesystem, path: str, mode: int, wanted: int) -> None:
    if mode != wanted:
        lower.chmod(path, wanted)
