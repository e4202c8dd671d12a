"""Committing an overlay to its lower filesystem: all changes are written, or none."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from errno import EBUSY
from typing import cast

from weakfs.errors import fault
from weakfs.filesystem import BaseFilesystem, Filesystem, Note
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.reducers import FileTree
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import EntryPut
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.diff import differences
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import Node, find, tree_of, walk
from weakfs.session import Session, SessionError
from weakfs.snapshots.directory.hard_links import DIFFERENT

logger = logging.getLogger("weakfs.backends")


def refuse_inside_transaction(lower: Filesystem, session: Session) -> None:
    """Raise `SessionError` if a rollback of the current transaction could not undo writes to the lower filesystem."""
    if getattr(lower, "session", None) is not session and session.in_transaction:
        raise SessionError(
            f"cannot commit the overlay inside a transaction of session {session.session_id!r}: a rollback could not "
            f"undo the writes to the lower filesystem; commit after it, or give the lower filesystem the same session"
        )


def write_down(lower: Filesystem, session: Session, below: FileTree, now: FileTree) -> None:
    """Make the lower filesystem match the overlay; if anything fails, it is left unchanged."""
    lower = by_canonical_paths(lower)
    with _all_or_nothing(lower, session):
        changes = sorted(differences(below, now), key=lambda change: change[0])
        for path, old, new in changes:
            if old is not None and (new is None or type(old) is not type(new) or _is_other_kind(old, new)):
                lower.delete(path, recursive=True)
        for path, old, new in changes:
            if new is not None:
                if type(old) is tuple and type(new) is tuple and leaves.is_file(old) and leaves.is_file(new):
                    _separate(lower, path, old, new, now)
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
            PermissionError,
            EBUSY,
            f"cannot commit the overlay: {lower!r} has no session that could undo the writes; "
            "use a lower filesystem with a session",
        )
    # Two commits in a row are two operations.
    return own.transaction(cause=own._cause_of_one_change("commit"))


def _is_other_kind(old: Node, new: Node) -> bool:
    if type(old) is not tuple or type(new) is not tuple:
        return False
    return leaves.kind_of(old) != leaves.kind_of(new) or not leaves.is_file(new)


def _separate(lower: Filesystem, path: str, old: Leaf, new: Leaf, now: FileTree) -> None:
    """Make a file a separate one if it has another name under which the overlay shows something else.

    A write changes a file under all its names, which are separate files in the overlay.
    """
    names = [find(now, name) for name in cast(BaseFilesystem, lower).hard_links(segments_of(path))]
    if any(type(one) is not tuple or not leaves.same(one, new) for one in names):
        _put(lower, path, old)
        _log(lower, (Note(path, DIFFERENT),))


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
        _put(lower, path, new)
    else:
        if old is None or not leaves.same_content(old, new):
            _log(lower, lower.write_bytes(path, leaves.content_of(new)).notes)
        _set_mode(lower, path, leaves.FILE_MODE if old is None else old[leaves.MODE], new[leaves.MODE])


def _set_mode(lower: Filesystem, path: str, mode: int, wanted: int) -> None:
    if mode != wanted:
        lower.chmod(path, wanted)


def _put(lower: Filesystem, path: str, leaf: Leaf) -> None:
    base = cast(BaseFilesystem, lower)
    base._refuse_if_read_only("write", path)
    _log(lower, base.apply(EntryPut(path, tree_of({segments_of(path)[-1]: leaf}), base.now())) or ())


def _log(lower: Filesystem, notes: Iterable[Note]) -> None:
    """Log what a file of the lower filesystem lost."""
    for note in notes:
        logger.warning("%s: %s", lower.root, note)
