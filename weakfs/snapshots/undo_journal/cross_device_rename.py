"""Renames across devices: if rename(2) fails with EXDEV, an entry is copied and the original is removed.

It fails if another filesystem is mounted below the directory, and for a directory in the lower layer of an overlay
mount. The copy keeps contents, permission bits, times and links; attributes that cannot be kept are noted. Each step is
logged before it is taken, so that an interrupted move is undone like any other change.
"""

from __future__ import annotations

from errno import EXDEV

from weakfs.reducers.tree.node import FileTree, Node, Segments
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.undo_journal.journal import Journal
from weakfs.snapshots.undo_journal.tree_copy import TreeCopy


def rename_or_copy(disk: HostDirectory, journal: Journal, source: Segments, destination: Segments) -> None:
    """Move an entry to another path; an entry that is already there must be in the journal."""
    journal.moved(source, destination)
    try:
        disk.rename(source, destination)
    except OSError as error:
        if error.errno != EXDEV:
            raise
        disk.remove(destination)
        journal.absent(destination)
        copy = TreeCopy(disk, disk)
        copy.copy(source, destination)
        for below, lost in copy.lost:
            journal.note_lost((*destination, *below[len(source) :]), lost)
        journal.keep(source)
        disk.remove(source)


def rename_or_create(disk: HostDirectory, journal: Journal, staged: Segments, segments: Segments, node: Node) -> None:
    """Move an entry that was staged elsewhere in the directory to its path; `node` is its content."""
    try:
        if type(node) is tuple:
            journal.note_lost(segments, disk.take_over(segments, staged))
        disk.rename(staged, segments)
    except OSError as error:
        if error.errno != EXDEV:
            raise
        if type(node) is FileTree:
            disk.put(segments, node)
        else:
            journal.note_lost(segments, disk.put_leaf(segments, node))
