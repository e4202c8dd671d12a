"""A host directory whose entries are reached from its open descriptor, segment by segment, never through a link.

A path is a tuple of segments as in the tree. Leading ".." segments leave the root; only a filesystem that follows
links anywhere (`follow_symlinks="allow"`) creates such paths. Errors are the operating system's own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from errno import EINVAL, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ESTALE
from itertools import chain, islice
from typing import Literal, cast

from weakfs.platforms import O_CLOEXEC, O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_PATH
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import FileTree, Node, Segments, tree_of
from weakfs.reducers.tree.repeated_subtrees import check_repeats
from weakfs.session.blobs.file_copy import copy_file
from weakfs.session.blobs.rope import Content
from weakfs.session.blobs.sparse import PIECE, read_pieces
from weakfs.session.interruption import check_interrupted, checked_between, is_interruptible
from weakfs.snapshots.directory import entries as own
from weakfs.snapshots.directory import openat2
from weakfs.snapshots.directory.birth_time import birth_time
from weakfs.snapshots.scan.stat_cache import canonical_name

DIRECTORY = own.DIRECTORY
# Opens a directory that may be searched even if it may not be listed.
PASSAGE = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
READ = os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC

# Interruption is checked once per this many directory entries.
STRIDE = 256

# The kind of an entry in a listing; "other" is a FIFO, a socket or a device.
Kind = Literal["file", "directory", "link", "other"]

# Up to this many segments are opened one by one; longer paths with one openat2 call, if the system has it.
MANY = 8

# Errors meaning that nothing is at a path: no entry, a non-directory above it, a name that no entry can have.
ABSENT = (ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, ESTALE)

SPECIALS = {
    stat.S_IFIFO: leaves.FIFO,
    stat.S_IFSOCK: leaves.SOCKET,
    stat.S_IFCHR: leaves.DEVICE,
    stat.S_IFBLK: leaves.DEVICE,
}


class OnDisk:
    """The content of a file on disk: its size when it was examined, read on demand."""

    __slots__ = ("_directory", "_segments", "_size")

    def __init__(self, directory: HostDirectory, segments: Segments, size: int) -> None:
        self._directory, self._segments, self._size = directory, segments, size

    def __len__(self) -> int:
        return self._size

    def __bool__(self) -> bool:
        return True

    def open(self) -> int:
        """Open the file for reading; the caller closes it."""
        return self._directory.open_file(self._segments)

    def join(self) -> bytes:
        """Read the whole file."""
        return b"".join(self.pieces())

    def piece(self, start: int, stop: int) -> bytes:
        """Read part of the file; less if the file ends before `stop`."""
        descriptor = self.open()
        try:
            pieces: list[bytes] = []
            while start < stop and (piece := os.pread(descriptor, min(PIECE, stop - start), start)):
                check_interrupted()
                pieces.append(piece)
                start += len(piece)
            return b"".join(pieces)
        finally:
            os.close(descriptor)

    def pieces(self) -> Iterator[bytes]:
        """Read the file piece by piece."""
        descriptor = self.open()
        try:
            yield from checked_between(read_pieces(descriptor, 0, os.fstat(descriptor).st_size))
        finally:
            os.close(descriptor)


class HostDirectory:
    """A host directory, held open: replacing a directory on its path later has no effect.

    Raises `FileNotFoundError` or `NotADirectoryError` if there is no such directory. A link is resolved once, here.
    """

    __slots__ = ("__weakref__", "descriptor", "root")

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self.descriptor = os.open(self.root, DIRECTORY)

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self.descriptor)

    # Reading

    def open_directory(self, segments: Segments, flags: int = DIRECTORY) -> int:
        """Open a directory; the caller closes it."""
        if not segments:
            return os.open(".", flags, dir_fd=self.descriptor)
        parts = [own.host_bytes(name) for name in segments]
        opened: Callable[..., int] = os.open
        if len(parts) > MANY and openat2.is_available():
            parts, opened = _joined(parts), openat2.open_path
        here = self.descriptor
        last = len(parts) - 1
        for place, part in enumerate(parts):
            try:
                below = opened(part, flags if place == last else PASSAGE, dir_fd=here)
            finally:
                if here != self.descriptor:
                    os.close(here)
            here = below
        return here

    def open_file(self, segments: Segments) -> int:
        """Open a regular file for reading; other kinds are never opened in a way that affects them."""
        with Parent(self, segments) as (directory, name):
            if not stat.S_ISREG(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                raise OSError(EINVAL, "it is not a regular file")
            descriptor = os.open(name, READ, dir_fd=directory)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(EINVAL, "it is not a regular file")
        return descriptor

    def status(self, segments: Segments) -> os.stat_result | None:
        """Return the status of an entry itself; `None` if nothing is there."""
        if not segments:
            return os.fstat(self.descriptor)
        try:
            with Parent(self, segments) as (directory, name):
                return os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise

    def born_at(self, segments: Segments, modified_at: int) -> int:
        """Return when an entry was created: its birth time if that is known and earlier than its modification time."""
        if not segments:
            born = birth_time(self.descriptor, b".")
        else:
            try:
                with Parent(self, segments) as (directory, name):
                    born = birth_time(directory, name)
            except OSError:
                return modified_at
        return modified_at if born is None else min(born, modified_at)

    def node(self, segments: Segments) -> Node | None:
        """Return an entry as a tree node: a leaf whose content is on disk, or a directory without its entries."""
        status = self.status(segments)
        if status is None:
            return None
        if stat.S_ISDIR(status.st_mode):
            return _empty_directory(status)
        if not stat.S_ISLNK(status.st_mode):
            return self._file(segments, status)
        try:
            with Parent(self, segments) as (directory, name):
                return _link(os.readlink(name, dir_fd=directory), status)
        except OSError as error:
            # It was replaced by something else between the two calls.
            if error.errno in (*ABSENT, EINVAL):
                return self.node(segments)
            raise

    def _file(self, segments: Segments, status: os.stat_result) -> Leaf:
        mode, at = stat.S_IMODE(status.st_mode), status.st_mtime_ns
        if not stat.S_ISREG(status.st_mode):
            return leaves.special(SPECIALS[stat.S_IFMT(status.st_mode)], mode=mode, at=at)
        content = cast(Content, OnDisk(self, segments, status.st_size))
        return leaves.file(content, mode=mode, at=at)

    def names(self, segments: Segments) -> list[tuple[str, Kind]]:
        """Return the name and kind of each entry of a directory, in any order.

        On most filesystems the listing includes the kind, so no entry is stat'ed: a third of the time of `entries`.
        """
        descriptor = self.open_directory(segments)
        try:
            with os.scandir(descriptor) as listing:
                return [(canonical_name(entry.name), _kind_of(entry)) for entry in _checked_between(listing)]
        finally:
            os.close(descriptor)

    def entries(self, segments: Segments) -> list[tuple[str, Node]]:
        """Return the entries of a directory, each as `node` returns it."""
        descriptor = self.open_directory(segments)
        found: list[tuple[str, Node]] = []
        try:
            with os.scandir(descriptor) as listing:
                for entry in _checked_between(listing):
                    name = canonical_name(entry.name)
                    try:
                        status = entry.stat(follow_symlinks=False)
                        kind = stat.S_IFMT(status.st_mode)
                        if kind == stat.S_IFLNK:
                            target = os.readlink(os.fsencode(entry.name), dir_fd=descriptor)
                            found.append((name, _link(target, status)))
                        elif kind == stat.S_IFDIR:
                            found.append((name, _empty_directory(status)))
                        else:
                            found.append((name, self._file((*segments, name), status)))
                    except OSError as error:
                        # It disappeared after it was listed.
                        if error.errno not in (*ABSENT, EINVAL):
                            raise
        finally:
            os.close(descriptor)
        return found

    def subtree(self, segments: Segments) -> Node | None:
        """Return an entry with everything below it; contents stay on disk."""
        node = self.node(segments)
        if type(node) is not FileTree:
            return node
        # Collect parents first, each with its entries, then build the trees from the last to the first.
        found: dict[Segments, tuple[FileTree, dict[str, Node]]] = {}
        stack = [(segments, node)]
        while stack:
            here, tree = stack.pop()
            entries = dict(self.entries(here))
            found[here] = tree, entries
            stack += [((*here, name), child) for name, child in entries.items() if type(child) is FileTree]
        for here, (tree, entries) in reversed(found.items()):
            whole = tree_of(entries, mode=tree.mode, modified_at=tree.modified_at, created_at=tree.created_at)
            if here == segments:
                return whole
            found[here[:-1]][1][here[-1]] = whole
        raise AssertionError("the first entry of the stack is the last to be built")

    def whole(self, segments: Segments) -> Node:
        """Return an entry with everything below it; raise `FileNotFoundError` if nothing is there."""
        found = self.subtree(segments)
        if found is None:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT))
        return found

    def whole_directory(self, segments: Segments) -> FileTree:
        """Return a directory with everything below it; raise `NotADirectoryError` if it is something else."""
        found = self.whole(segments)
        if type(found) is not FileTree:
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR))
        return found

    # Changing

    def make_directory(self, segments: Segments, *, mode: int, modified_at: int | None = None) -> None:
        """Create one directory, with exactly these permission bits."""
        with Parent(self, segments) as (directory, name):
            os.mkdir(name, 0o700, dir_fd=directory)
            own.set_status(directory, name, mode=mode, modified_at=modified_at)

    def put_leaf(
        self, segments: Segments, leaf: Leaf, *, exclusive: bool = False, temporary: bytes | None = None
    ) -> str | None:
        """Put a file, a link or a FIFO at a path atomically, replacing what is there unless `exclusive`.

        The entry is created in the same directory under the name `temporary` and renamed into place, so that readers
        see the old entry or the new one. A directory cannot be replaced. A file gets the owner, group and extended
        attributes of the one that it replaces, where the system allows; returns those that it does not allow, `None`
        if nothing is lost. With `exclusive`, raises `FileExistsError` if the path exists.
        """
        lost: str | None = None
        temporary = temporary or own.temporary_name()
        with Parent(self, segments) as (directory, name):
            try:
                own.make_leaf(directory, temporary, leaf)
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
        """Copy attributes other than content from the file at one path to that at another; see `put_leaf`."""
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
        try:
            if not stat.S_ISREG(os.fstat(target).st_mode):
                raise OSError(EINVAL, "it is not a regular file")
            copy_file(source, target)
            # Writing clears the setuid and setgid bits.
            if stat.S_IMODE(os.fstat(target).st_mode) != mode:
                os.fchmod(target, mode)
            os.utime(target, ns=(modified_at, modified_at))
        finally:
            os.close(target)

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

    def put(self, segments: Segments, node: Node) -> None:
        """Create a node and everything below it, exactly as it is, at a path where nothing is."""
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
        if segments:
            with Parent(self, segments) as (directory, name):
                own.set_status(directory, name, mode=mode, modified_at=modified_at)
            return
        if mode is not None:
            os.fchmod(self.descriptor, mode)
        if modified_at is not None:
            os.utime(self.descriptor, ns=(modified_at, modified_at))

    def stamp(self, segments: Segments, modified_at: int) -> None:
        """Set a directory's modification time if it differs; skip a directory that another user lets us write to."""
        status = self.status(segments)
        if status is not None and status.st_mtime_ns != modified_at:
            with suppress(PermissionError):
                self.set_status(segments, modified_at=modified_at)

    def make_readable(self, wanted: FileTree) -> None:
        """Make everything below readable by its owner, if that is us and `wanted` has its parent directory."""
        own_mode = stat.S_IMODE(os.fstat(self.descriptor).st_mode)
        if own_mode & 0o700 != 0o700:
            with suppress(PermissionError):
                os.fchmod(self.descriptor, own_mode | 0o700)
        stack: list[tuple[Segments, FileTree]] = [((), wanted)]
        while stack:
            here, tree = stack.pop()
            for name, node in self.entries(here):
                below, child = (*here, name), maps.get(tree._children, name)
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


class Parent:
    """The directory that contains a path's last name: `(descriptor, name)`, closed on exit."""

    __slots__ = ("_descriptor", "_directory", "_segments")

    def __init__(self, directory: HostDirectory, segments: Segments) -> None:
        self._directory, self._segments = directory, segments

    def __enter__(self) -> tuple[int, bytes]:
        name = own.host_bytes(self._segments[-1])
        self._descriptor = self._directory.open_directory(self._segments[:-1], PASSAGE)
        return self._descriptor, name

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _joined(parts: list[bytes]) -> list[bytes]:
    """Join segments into paths as long as one call accepts."""
    whole = b"/".join(parts)
    if len(whole) <= openat2.MOST_BYTES:
        return [whole]
    # A segment has at most 255 bytes.
    at_once = openat2.MOST_BYTES // 256
    half = max(len(parts) // 2, at_once)
    return [*_joined(parts[:half]), *_joined(parts[half:])] if len(parts) > at_once else parts


def _checked_between(listing: Iterable[os.DirEntry[str]]) -> Iterable[os.DirEntry[str]]:
    """Yield the entries of a directory, checking for interruption now and then."""
    if not is_interruptible():
        return listing
    return chain.from_iterable(_strides(iter(listing)))


def _strides(listing: Iterator[os.DirEntry[str]]) -> Iterator[list[os.DirEntry[str]]]:
    while some := list(islice(listing, STRIDE)):
        check_interrupted()
        yield some


def _kind_of(entry: os.DirEntry[str]) -> Kind:
    if entry.is_file(follow_symlinks=False):
        return "file"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "link" if entry.is_symlink() else "other"


def _empty_directory(status: os.stat_result) -> FileTree:
    return FileTree({}, stat.S_IMODE(status.st_mode), status.st_mtime_ns, status.st_mtime_ns)


def _link(target: bytes, status: os.stat_result) -> Leaf:
    return leaves.link(names.from_bytes(target), at=status.st_mtime_ns)
