"""Applying events to a disk: the result is the same as that of the event's reducer for the same entries."""

from __future__ import annotations

import stat
from collections.abc import Callable
from errno import EBUSY
from typing import Any, cast

from weakfs.reducers import events as e
from weakfs.reducers.apply import REDUCERS
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Node, Segments, find, path_of, put
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.entries import temporary_name
from weakfs.snapshots.directory.hard_links import SharedFile
from weakfs.snapshots.restore import overwrite
from weakfs.snapshots.undo_journal.cross_device_rename import rename_or_copy
from weakfs.snapshots.undo_journal.journal import Journal

# Events that change one file, which may have several names.
CHANGES_FILE = (e.FileWritten, e.FileAppended, e.FileSpliced, e.ModeChanged)

# Events that change, replace or create one entry, without moving any.
CHANGES_ENTRY = (*CHANGES_FILE, e.LinkMade, e.EntryPut)


def apply(
    disk: HostDirectory, journal: Journal, event: e.Event, *places: Segments, shared: SharedFile | None = None
) -> None:
    """Apply `event` at the places that its paths lead to; each step is logged in the journal before it is taken.

    `shared` is the file there if it has several names. It is changed in place if all of them are in the directory, and
    replaced by a separate file otherwise.
    """
    if shared is None:
        APPLY[type(event)](disk, journal, event, *places)
    elif shared.names:
        _change_in_place(disk, journal, event, places[0], shared)
    else:
        if shared.reason is not None:
            journal.note(places[0], shared.reason)
        APPLY[type(event)](disk, journal, event, *places)


def _change_in_place(disk: HostDirectory, journal: Journal, event: Any, segments: Segments, shared: SharedFile) -> None:
    """Change a file that keeps its inode and all its names."""
    if isinstance(event, e.ModeChanged):
        # A later command may make its names separate files.
        for name in shared.names:
            journal.status(name)
        disk.set_status(segments, mode=event.mode)
        return
    old = disk.node(segments)
    new = _reduced(event, segments, old)
    if type(new) is not tuple:
        return
    _check_writable(disk, segments, old)
    before = disk.status(segments[:-1])
    # The new content is on disk before anything is changed.
    temporary = (*segments[:-1], temporary_name().decode())
    journal.absent(temporary)
    disk.put(temporary, new)
    overwrite(disk, journal, temporary, new, segments, shared)
    disk.remove(temporary)
    if before is not None:
        disk.stamp(segments[:-1], before.st_mtime_ns)


def _put_leaf(disk: HostDirectory, journal: Journal, event: Any, segments: Segments) -> None:
    """Write, append, splice, link or put: give one file new content."""
    old = disk.node(segments)
    if type(old) is tuple and leaves.is_link(old) and type(event) is not e.LinkMade:
        raise OSError(EBUSY, "it became a symbolic link during the lookup")
    new = _reduced(event, segments, old)
    if type(new) is not tuple:
        return
    _check_writable(disk, segments, old)
    if old is None:
        _make_parents(disk, journal, segments, event.at)
    before = disk.status(segments[:-1])
    _put_atomically(disk, journal, segments, new, exclusive=old is None)
    # As in memory, a directory's modification time changes with its set of names, not with a file in it.
    disk.stamp(segments[:-1], event.at if old is None or before is None else before.st_mtime_ns)


def _reduced(event: Any, segments: Segments, old: Node | None, source: Segments | None = None) -> Node | None:
    """Return what the reducer of `event` makes of an entry."""
    if source is None:
        # The directories above make no difference.
        segments = segments[-1:]
    held = put(EMPTY_TREE, source or segments, old, 0) if old is not None else EMPTY_TREE
    path = path_of(segments)
    named = {"destination": path, "source": path_of(source)} if source is not None else {"path": path}
    return find(REDUCERS[type(event)](held, _evolved(event, named)), segments)


def _evolved(event: Any, named: dict[str, str]) -> Any:
    import attrs

    return attrs.evolve(event, filesystem=None, **named)


def _put_atomically(
    disk: HostDirectory, journal: Journal, segments: Segments, leaf: leaves.Leaf, *, exclusive: bool
) -> None:
    temporary = temporary_name()
    journal.keep(segments, temporary=(*segments[:-1], temporary.decode()))
    journal.note_lost(segments, disk.put_leaf(segments, leaf, exclusive=exclusive, temporary=temporary))


def _check_writable(disk: HostDirectory, segments: Segments, old: Node | None) -> None:
    if type(old) is tuple and leaves.is_file(old):
        disk.check_writable(segments)


def _make_parents(disk: HostDirectory, journal: Journal, segments: Segments, at: int) -> None:
    """Create the missing parents of a path, modified at `at`."""
    if disk.status(segments[:-1]) is not None:
        return
    for depth in range(1, len(segments)):
        above = segments[:depth]
        if disk.status(above) is None:
            journal.absent(above)
            disk.make_directory(above, mode=leaves.DIRECTORY_MODE, modified_at=at)
            disk.stamp(above[:-1], at)


def _make_directory(disk: HostDirectory, journal: Journal, event: e.DirectoryMade, segments: Segments) -> None:
    _make_parents(disk, journal, (*segments, ""), event.at)


def _delete(disk: HostDirectory, journal: Journal, event: e.EntryDeleted, segments: Segments) -> None:
    status = disk.status(segments)
    if status is not None and stat.S_ISDIR(status.st_mode):
        disk.check_removable(segments)
    journal.keep(segments)
    disk.remove(segments)
    disk.stamp(segments[:-1], event.at)


def _move(disk: HostDirectory, journal: Journal, event: e.EntryMoved, source: Segments, destination: Segments) -> None:
    _make_parents(disk, journal, destination, event.at)
    journal.keep(destination)
    rename_or_copy(disk, journal, source, destination)
    disk.stamp(source[:-1], event.at)
    disk.stamp(destination[:-1], event.at)


def _copy(disk: HostDirectory, journal: Journal, event: e.EntryCopied, source: Segments, destination: Segments) -> None:
    new = cast(Node, _reduced(event, destination, disk.whole(source), source))
    there = disk.node(destination)
    _make_parents(disk, journal, destination, event.at)
    before = disk.status(destination[:-1])
    if type(new) is FileTree:
        journal.absent(destination)
        disk.put(destination, new)
    else:
        _check_writable(disk, destination, there)
        _put_atomically(disk, journal, destination, new, exclusive=there is None)
    disk.stamp(destination[:-1], event.at if there is None or before is None else before.st_mtime_ns)


def _change_mode(disk: HostDirectory, journal: Journal, event: e.ModeChanged, segments: Segments) -> None:
    status = disk.status(segments)
    node = disk.node(segments)
    if status is None or node is None or (type(node) is tuple and leaves.is_link(node)):
        return
    if type(node) is tuple and status.st_nlink > 1 and not leaves.is_special(node):
        before = disk.status(segments[:-1])
        _put_atomically(disk, journal, segments, leaves.with_mode(node, event.mode), exclusive=False)
        if before is not None:
            disk.stamp(segments[:-1], before.st_mtime_ns)
        return
    journal.status(segments)
    disk.set_status(segments, mode=event.mode)


APPLY: dict[type, Callable[..., None]] = {
    e.FileWritten: _put_leaf,
    e.FileAppended: _put_leaf,
    e.FileSpliced: _put_leaf,
    e.LinkMade: _put_leaf,
    e.EntryPut: _put_leaf,
    e.DirectoryMade: _make_directory,
    e.EntryDeleted: _delete,
    e.EntryMoved: _move,
    e.EntryCopied: _copy,
    e.ModeChanged: _change_mode,
}
