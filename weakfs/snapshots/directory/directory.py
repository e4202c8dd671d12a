"""A host directory whose entries are read and changed through its open descriptor, never through a link."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from errno import EACCES, EINVAL

from weakfs.platforms import Opened
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import FileTree, Node, Segments
from weakfs.reducers.tree.repeated_subtrees import check_repeats
from weakfs.session.blobs.file_copy import copy_file
from weakfs.session.interruption import check_interrupted
from weakfs.snapshots.directory import entries as own
from weakfs.snapshots.directory.entries import canonical_name
from weakfs.snapshots.directory.held_directory import ABSENT, Parent
from weakfs.snapshots.directory.nodes import ReadableDirectory

# What a directory loses if its time may not be set, in notes.
MODIFICATION_TIME = "modification time"


class HostDirectory(ReadableDirectory):
    """A host directory whose entries can be read and changed."""

    __slots__ = ()

    def on_created(self, directory: int, name: bytes) -> None:
        """Finish a new entry of an open directory before it can be seen at its path; for subclasses."""

    def make_directory(self, segments: Segments, *, mode: int, modified_at: int | None = None) -> None:
        """Create one directory, with exactly these permission bits."""
        with Parent(self, segments) as (directory, name):
            os.mkdir(name, 0o700, dir_fd=directory)
            self.on_created(directory, name)
            own.set_status(directory, name, mode=mode, modified_at=modified_at)

    def put_leaf(
        self, segments: Segments, leaf: Leaf, *, exclusive: bool = False, temporary: bytes | None = None
    ) -> str | None:
        """Put a file, a link or a FIFO at a path atomically, replacing what is there unless `exclusive`.

        The entry is created in the same directory under the name `temporary` and renamed into place, so that readers
        see the old entry or the new one. A directory cannot be replaced. A file gets the owner, group and extended
        attributes of the file that it replaces, as far as the system permits. Return the attributes that are lost, or
        `None` if there are none. With `exclusive`, raises `FileExistsError` if the path exists.
        """
        lost: str | None = None
        temporary = temporary or own.temporary_name()
        with Parent(self, segments) as (directory, name):
            try:
                own.make_leaf(directory, temporary, leaf)
                self.on_created(directory, temporary)
                if exclusive:
                    own.move_exclusively(directory, temporary, name)
                else:
                    lost = own.take_over_attributes(directory, name, directory, temporary)
                    os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=directory)
                raise
        return lost

    def take_over(self, source: Segments, destination: Segments) -> str | None:
        """Copy the attributes, but not the content, of the file at one path to the file at another; see `put_leaf`."""
        with Parent(self, source) as (old, old_name), Parent(self, destination) as (new, new_name):
            return own.take_over_attributes(old, old_name, new, new_name)

    def overwrite(self, segments: Segments, source: int, *, mode: int, modified_at: int) -> None:
        """Copy the content of an open file into the file at a path, in place: its inode and all its names stay.

        The target is truncated first, so the caller must have a copy of it. Permission bits that keep the owner from
        writing are changed during the write.
        """
        try:
            target = self.open_for_writing(segments)
        except PermissionError:
            self.set_status(segments, mode=mode | stat.S_IWUSR)
            target = self.open_for_writing(segments)
        with Opened(target):
            if not stat.S_ISREG(os.fstat(target).st_mode):
                raise OSError(EINVAL, "it is not a regular file")
            copy_file(source, target)
            # Writing clears the setuid and setgid bits.
            if stat.S_IMODE(os.fstat(target).st_mode) != mode:
                os.fchmod(target, mode)
            os.utime(target, ns=(modified_at, modified_at))

    def open_for_writing(self, segments: Segments) -> int:
        """Open a file for writing; the caller closes it."""
        with Parent(self, segments) as (directory, name):
            return os.open(name, own.WRITABLE, dir_fd=directory)

    def link(self, source: Segments, destination: Segments) -> None:
        """Create a hard link to a file."""
        with Parent(self, source) as (old, from_name), Parent(self, destination) as (new, to_name):
            os.link(from_name, to_name, src_dir_fd=old, dst_dir_fd=new, follow_symlinks=False)

    def check_writable(self, segments: Segments) -> None:
        """Raise `PermissionError` for a file that may not be written, even if it could be replaced."""
        with Parent(self, segments) as (directory, name):
            own.check_writable(directory, name)

    def check_removable(self, segments: Segments) -> None:
        """Raise `PermissionError` naming a directory from which the user may not remove the entries.

        Such a directory belongs to another user, and is in a directory of this user.
        """
        user = os.geteuid()
        stack = [segments] if user else []
        while stack:
            here = stack.pop()
            try:
                descriptor = self.open_directory(here)
            except PermissionError:
                status = self.status(here)
                if status is not None and status.st_uid == user:
                    # The permissions are granted before the directory is removed.
                    continue
                raise
            with Opened(descriptor):
                status = os.fstat(descriptor)
                with os.scandir(descriptor) as listing:
                    entries = list(listing)
                if entries and not _may_remove(entries, descriptor, status, user):
                    raise PermissionError(EACCES, os.strerror(EACCES), b"/" + b"/".join(own.host_path(here)))
                stack += [(*here, canonical_name(one.name)) for one in entries if one.is_dir(follow_symlinks=False)]

    def put(self, segments: Segments, node: Node) -> None:
        """Create a node and everything below it, exactly as it is, at an unused path."""
        if type(node) is FileTree:
            check_repeats(node)
        made: list[tuple[Segments, FileTree]] = []
        stack = [(segments, node)]
        while stack:
            check_interrupted()
            here, one = stack.pop()
            own.check_name(here[-1])
            if type(one) is FileTree:
                self.make_directory(here, mode=0o700)
                made.append((here, one))
                stack += [((*here, name), child) for name, child in maps.items(one._children)]
            else:
                with Parent(self, here) as (directory, name):
                    own.make_leaf(directory, name, one)
                    self.on_created(directory, name)
        for here, tree in reversed(made):
            self.set_status(here, mode=tree.mode, modified_at=tree.modified_at)

    def fill(self, tree: FileTree) -> None:
        """Make this empty directory exactly match a tree."""
        check_repeats(tree)
        for name, child in maps.items(tree._children):
            self.put((name,), child)
        self.set_status((), mode=tree.mode, modified_at=tree.modified_at)

    def set_status(self, segments: Segments, *, mode: int | None = None, modified_at: int | None = None) -> None:
        """Set the permission bits and modification time (nanoseconds) of an entry itself."""
        kept = self.kept_open(segments)
        if kept is not None:
            own.set_status(kept, b".", mode=mode, modified_at=modified_at)
            return
        if segments:
            with Parent(self, segments) as (directory, name):
                own.set_status(directory, name, mode=mode, modified_at=modified_at)
            return
        if mode is not None:
            os.fchmod(self.descriptor, mode)
        if modified_at is not None:
            os.utime(self.descriptor, ns=(modified_at, modified_at))

    def stamp(self, segments: Segments, modified_at: int) -> bool:
        """Set a directory's modification time if it differs. Return false if the user may not.

        That is so if it belongs to another user, or if entries may only be added to it.
        """
        status = self.status(segments)
        if status is not None and status.st_mtime_ns != modified_at:
            try:
                self.set_status(segments, modified_at=modified_at)
            except PermissionError:
                return False
        return True

    def make_readable(self, wanted: FileTree) -> None:
        """Make the entries that belong to us readable, if `wanted` has their parent directories."""
        own_mode = stat.S_IMODE(os.fstat(self.descriptor).st_mode)
        if own_mode & 0o700 != 0o700:
            with suppress(PermissionError):
                os.fchmod(self.descriptor, own_mode | 0o700)
        stack: list[tuple[Segments, FileTree]] = [((), wanted)]
        while stack:
            here, tree = stack.pop()
            for name, node in self.entries(here):
                below, child = (*here, name), tree._entry(name)
                if type(node) is FileTree and type(child) is FileTree:
                    mode = node.mode | 0o700
                    stack.append((below, child))
                elif type(node) is tuple and leaves.is_file(node):
                    mode = node[leaves.MODE] | 0o400
                else:
                    continue
                if mode != (node.mode if type(node) is FileTree else node[leaves.MODE]):
                    with suppress(PermissionError):
                        self.set_status(below, mode=mode)

    def rename(self, source: Segments, destination: Segments) -> None:
        """Move an entry within the directory, replacing what is at the destination."""
        with Parent(self, source) as (old, from_name), Parent(self, destination) as (new, to_name):
            own.rename(old, from_name, new, to_name)

    def remove(self, segments: Segments) -> None:
        """Remove whatever is at a path; do nothing if nothing is there."""
        try:
            with Parent(self, segments) as (directory, name):
                own.remove(directory, name)
        except OSError as error:
            if error.errno not in ABSENT:
                raise


def _may_remove(entries: list[os.DirEntry[str]], descriptor: int, status: os.stat_result, user: int) -> bool:
    """Return whether a user may remove the entries of an open directory."""
    if status.st_uid == user:
        return True
    if not os.access(".", os.W_OK | os.X_OK, dir_fd=descriptor, effective_ids=True):
        return False
    is_sticky = bool(status.st_mode & stat.S_ISVTX)
    return not is_sticky or all(one.stat(follow_symlinks=False).st_uid == user for one in entries)
