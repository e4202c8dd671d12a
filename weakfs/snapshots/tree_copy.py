"""A copy of an entry with all below it, for where it cannot be renamed or linked: another device, an overlay mount.

Contents with their holes, permission bits, times, owners, extended attributes and hard links among the entries are
copied. What the system does not allow is left out and reported.
"""

from __future__ import annotations

import os
import stat

from attrs import define, field

from weakfs.reducers.tree import Segments
from weakfs.session.file_copy import copy_file
from weakfs.snapshots.directory import HostDirectory, Parent
from weakfs.snapshots.entries import CREATE, copy_attributes, copy_link_owner, set_status
from weakfs.snapshots.readable import open_file
from weakfs.snapshots.seen import canonical_name


@define(eq=False)
class TreeCopy:
    """Copies one entry from one directory to a path of another, where nothing is."""

    source: HostDirectory
    target: HostDirectory
    # What could not be copied: the path below the source, and what of it.
    lost: list[tuple[Segments, str]] = field(factory=list[tuple[Segments, str]])
    _first_names: dict[tuple[int, int], Segments] = field(factory=dict[tuple[int, int], Segments])

    def copy(self, start: Segments, destination: Segments) -> bool:
        """Copy the entry at `start`; returns false where nothing is. What vanishes meanwhile is passed over."""
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
        return bool(made) or self.target.status(destination) is not None

    def _names(self, segments: Segments) -> list[str]:
        descriptor = self.source.open_directory(segments)
        try:
            return sorted(canonical_name(name) for name in os.listdir(descriptor))
        finally:
            os.close(descriptor)

    def _copy_leaf(self, here: Segments, there: Segments, status: os.stat_result) -> None:
        inode = (status.st_dev, status.st_ino)
        if status.st_nlink > 1 and (first := self._first_names.setdefault(inode, there)) != there:
            self.target.link(first, there)
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
            finally:
                os.close(target)
        finally:
            os.close(source)
        self.target.set_status(there, mode=stat.S_IMODE(status.st_mode), modified_at=status.st_mtime_ns)

    def _note(self, segments: Segments, lost: str | None) -> None:
        if lost is not None:
            self.lost.append((segments, lost))
