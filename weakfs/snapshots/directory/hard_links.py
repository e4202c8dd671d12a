"""Hard links: the names of a file in a host directory, and whether the file may be changed in place.

A file is changed in place only if all its names are inside the directory: a name outside belongs to somebody else, such
as a package manager's cache, and the file under it must not change. Finding names costs one listing of the whole
directory per file; after that each known name is only stat'ed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable
from contextlib import suppress
from errno import EACCES
from typing import Protocol

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.platforms import Opened
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.node import FileTree, Segments, find, put
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.entries import DIRECTORY, canonical_name

# Device and inode number of a file.
Inode = tuple[int, int]

NAME_OUTSIDE = "it was a hard link to a file with a name outside this directory, and is now a separate file"
NOT_OURS = "it was a hard link to a file of another user, whose times cannot be set, and is now a separate file"
COPIED_UP = "the mount made it a separate file, apart from its other hard links, when it was opened for writing"
NOT_WRITABLE = "it was a hard link to a file that cannot be changed in place, and is now a separate file"
DIFFERENT = "it was a hard link to a file from which it now differs, and is now a separate file"


class HoldsLinks(Protocol):
    """An undo journal, which may hold some of a file's names."""

    def links_to(self, inode: Inode) -> int:
        """Return how many names of a file the journal holds."""
        ...


@frozen
class SharedFile:
    """A file with several names: all its names if it may be changed in place, otherwise the reason why not."""

    inode: Inode
    names: tuple[Segments, ...] = ()
    reason: str | None = None


@define(eq=False)
class HardLinks:
    """The names of the files of one directory, found on demand and cached."""

    disk: HostDirectory
    _known: dict[Inode, tuple[Segments, ...]] = field(factory=dict[Inode, tuple[Segments, ...]])

    def shared(self, segments: Segments, journal: HoldsLinks | None = None) -> SharedFile | None:
        """Return the names of the file at a path; `None` if it has a single name or is not a file.

        Names in `journal` count as names in the directory, because an undo puts them back there.
        """
        return self.shared_all((segments,), journal).get(segments)

    def shared_all(self, paths: Iterable[Segments], journal: HoldsLinks | None = None) -> dict[Segments, SharedFile]:
        """Return the names of the files at several paths that have more than one. O(entries) if there are any."""
        found: dict[Segments, SharedFile] = {}
        inside: dict[Segments, os.stat_result] = {}
        for segments in paths:
            status = self.disk.status(segments)
            if status is None or status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
                continue
            reason = NOT_OURS if os.geteuid() not in (0, status.st_uid) else self._opened_reason(segments)
            # An overlay mount copies a file up from a lower layer when it is opened, without its other names.
            status = self.disk.status(segments) or status
            if status.st_nlink < 2:
                reason = COPIED_UP
            if reason is not None:
                found[segments] = SharedFile(_inode(status), reason=reason)
            else:
                inside[segments] = status
        links: dict[Inode, int] = {}
        for status in inside.values():
            kept = 0 if journal is None else journal.links_to(_inode(status))
            links[_inode(status)] = status.st_nlink - kept
        names = self._names(links)
        for segments, status in inside.items():
            own = names.get(_inode(status), ())
            is_whole = len(own) == links[_inode(status)] and segments in own
            found[segments] = SharedFile(_inode(status), own) if is_whole else _outside(status)
        return found

    def _opened_reason(self, segments: Segments) -> str | None:
        try:
            os.close(self.disk.open_for_writing(segments))
        except OSError as error:
            # The owner can add the missing write permission.
            return None if error.errno == EACCES else NOT_WRITABLE
        return None

    def _names(self, wanted: dict[Inode, int]) -> dict[Inode, tuple[Segments, ...]]:
        """Return the names of files inside the directory; `wanted` maps each inode to its expected number of names."""
        known = {inode: self._still(inode) for inode in wanted}
        missing = {inode for inode, names in known.items() if len(names) != wanted[inode]}
        if missing:
            for inode, names in find_names(self.disk, missing).items():
                known[inode] = self._known[inode] = names
        return known

    def _still(self, inode: Inode) -> tuple[Segments, ...]:
        names = self._known.get(inode, ())
        return tuple(name for name in names if _is(self.disk, name, inode))


def set_mode_of_all_names(
    disk: HostDirectory, tree: FileTree, segments: Segments, mode: int
) -> tuple[FileTree, tuple[Segments, ...]]:
    """Set the permission bits of a file, and those of its other names in a tree that was scanned from `disk`.

    Return the tree and the other names. O(entries) if the file has several names.
    """
    disk.set_status(segments, mode=mode)
    status = disk.status(segments)
    if status is None or status.st_nlink < 2 or stat.S_ISDIR(status.st_mode):
        return tree, ()
    names = find_names(disk, (_inode(status),))[_inode(status)]
    others = tuple(name for name in names if name != segments)
    for name in others:
        leaf, above = find(tree, name), find(tree, name[:-1])
        if type(leaf) is tuple and type(above) is FileTree:
            tree = put(tree, name, leaves.with_mode(leaf, mode), above.modified_at)
    return tree, others


def find_names(disk: HostDirectory, wanted: Collection[Inode]) -> dict[Inode, tuple[Segments, ...]]:
    """Return the names of files, sorted. O(entries of the directory); directories that cannot be listed are skipped."""
    numbers = {number for _, number in wanted}
    found: dict[Inode, list[Segments]] = {inode: [] for inode in wanted}
    stack: list[Segments] = [()]
    while stack:
        here = stack.pop()
        try:
            descriptor = disk.open_directory(here, DIRECTORY)
        except OSError:
            continue
        with Opened(descriptor), suppress(OSError), os.scandir(descriptor) as listing:
            for entry in listing:
                if entry.is_dir(follow_symlinks=False):
                    stack.append((*here, canonical_name(entry.name)))
                elif entry.inode() in numbers:
                    status = entry.stat(follow_symlinks=False)
                    if _inode(status) in found:
                        found[_inode(status)].append((*here, canonical_name(entry.name)))
    return {inode: tuple(sorted(names)) for inode, names in found.items()}


def _is(disk: HostDirectory, segments: Segments, inode: Inode) -> bool:
    status = disk.status(segments)
    return status is not None and _inode(status) == inode


def _inode(status: os.stat_result) -> Inode:
    return status.st_dev, status.st_ino


def _outside(status: os.stat_result) -> SharedFile:
    return SharedFile(_inode(status), reason=NAME_OUTSIDE)
