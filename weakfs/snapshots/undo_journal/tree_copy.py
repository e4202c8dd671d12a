"""Copying an entry with everything below it if it cannot be renamed or linked: across devices, on overlay mounts.

Copies contents with their holes, permission bits, times, owners, extended attributes and hard links among the entries.
Attributes that the system does not allow to be set are left out and reported.
"""

from __future__ import annotations

import os
import stat

from attrs import field

from weakfs.class_decorators import define
from weakfs.reducers.tree.node import Segments
from weakfs.session.blobs.file_copy import copy_file
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.entries import CREATE, canonical_name, copy_attributes, copy_link_owner, set_status
from weakfs.snapshots.directory.hard_links import Inode
from weakfs.snapshots.directory.held_directory import Parent
from weakfs.snapshots.directory.permissions import open_file

# The path of an entry, and the attributes of it that could not be copied.
Lost = tuple[Segments, str]


@define
class _Linked:
    """A file with several names: the name copied first, its copy, how many names there are, and how many were seen."""

    source: Segments
    target: Segments
    names: int
    seen: int = 0


@define(eq=False)
class TreeCopy:
    """A copy of one entry from one directory to an unused path of another."""

    source: HostDirectory
    target: HostDirectory
    lost: list[Lost] = field(factory=list[Lost])
    # Pairs of inode numbers: the original and its copy.
    inodes: list[tuple[int, int]] = field(factory=list[tuple[int, int]])
    _linked: dict[Inode, _Linked] = field(factory=dict[Inode, "_Linked"])

    def copy(self, start: Segments, destination: Segments) -> bool:
        """Copy the entry at `start`; return false if there is none.

        Entries that disappear in the meantime are skipped.
        """
        made: list[tuple[Segments, Segments, os.stat_result]] = []
        stack = [start]
        while stack:
            here = stack.pop()
            there = (*destination, *here[len(start) :])
            status = self.source.status(here)
            if status is None:
                continue
            if not stat.S_ISDIR(status.st_mode):
                self._copy_leaf(here, there, status)
                continue
            self.target.make_directory(there, mode=0o700)
            made.append((here, there, status))
            stack += [(*here, name) for name in self._names(here)]
        for here, there, status in reversed(made):
            self._end_directory(here, there, status)
        for linked in self._linked.values():
            if linked.seen < linked.names:
                self.lost.append((linked.source, "hard link"))
        return bool(made) or self.target.status(destination) is not None

    def _names(self, segments: Segments) -> list[str]:
        descriptor = self.source.open_directory(segments)
        try:
            return sorted(canonical_name(name) for name in os.listdir(descriptor))
        finally:
            os.close(descriptor)

    def _copy_leaf(self, here: Segments, there: Segments, status: os.stat_result) -> None:
        if status.st_nlink > 1:
            linked = self._linked.setdefault((status.st_dev, status.st_ino), _Linked(here, there, status.st_nlink))
            linked.seen += 1
            if linked.seen > 1:
                self.target.link(linked.target, there)
                return
        mode, at = stat.S_IMODE(status.st_mode), status.st_mtime_ns
        with Parent(self.source, here) as (old, old_name), Parent(self.target, there) as (new, new_name):
            if stat.S_ISREG(status.st_mode):
                self._copy_file(here, status, (old, old_name), (new, new_name))
                return
            if stat.S_ISLNK(status.st_mode):
                os.symlink(os.readlink(old_name, dir_fd=old), new_name, dir_fd=new)
            else:
                os.mknod(new_name, stat.S_IFMT(status.st_mode) | 0o600, status.st_rdev, dir_fd=new)
            self._note(here, copy_link_owner(new, new_name, status))
            set_status(new, new_name, mode=mode, modified_at=at)
            made = os.stat(new_name, dir_fd=new, follow_symlinks=False)
            self.inodes.append((status.st_ino, made.st_ino))

    def _copy_file(
        self, here: Segments, status: os.stat_result, old: tuple[int, bytes], new: tuple[int, bytes]
    ) -> None:
        source = open_file(os.fsdecode(old[1]), old[0], status.st_mode)
        try:
            before = os.fstat(source)
            target = os.open(new[1], CREATE, 0o600, dir_fd=new[0])
            try:
                copy_file(source, target)
                os.fchmod(target, stat.S_IMODE(before.st_mode))
                self._note(here, copy_attributes(source, before, target))
                os.utime(target, ns=(before.st_mtime_ns, before.st_mtime_ns))
                self.inodes.append((before.st_ino, os.fstat(target).st_ino))
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _end_directory(self, here: Segments, there: Segments, status: os.stat_result) -> None:
        source = self.source.open_directory(here)
        try:
            target = self.target.open_directory(there)
            try:
                self._note(here, copy_attributes(source, status, target))
                self.inodes.append((status.st_ino, os.fstat(target).st_ino))
            finally:
                os.close(target)
        finally:
            os.close(source)
        self.target.set_status(there, mode=stat.S_IMODE(status.st_mode), modified_at=status.st_mtime_ns)

    def _note(self, segments: Segments, lost: str | None) -> None:
        if lost is not None:
            self.lost.append((segments, lost))
