"""Reading a host directory: its entries as nodes of a tree, with contents that stay on disk until they are read."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from errno import EFBIG, EINVAL, ENOENT, ENOTDIR
from itertools import chain, islice
from typing import Literal, cast

from weakfs.reducers.timestamps import clamped
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import FileTree, Node, Segments, tree_of
from weakfs.session.blobs.rope import Content
from weakfs.session.blobs.sparse import PIECE, read_pieces
from weakfs.session.interruption import check_interrupted, checked_between, is_interruptible
from weakfs.snapshots.directory.birth_time import birth_time
from weakfs.snapshots.directory.entries import READ, canonical_name, host_bytes
from weakfs.snapshots.directory.held_directory import ABSENT, PASSAGE, HeldDirectory, Parent, check_regular

# Interruption is checked once per this many directory entries.
STRIDE = 256

# The kind of an entry in a listing; "other" is a FIFO, a socket or a device.
Kind = Literal["file", "directory", "link", "other"]

SPECIALS = {
    stat.S_IFIFO: leaves.FIFO,
    stat.S_IFSOCK: leaves.SOCKET,
    stat.S_IFCHR: leaves.DEVICE,
    stat.S_IFBLK: leaves.DEVICE,
}


class KeptOpen:
    """An open directory, closed with the last reference to it."""

    __slots__ = ("descriptor",)

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


class OnDisk:
    """The content of a file on disk: its size when it was examined, read on demand.

    `parent` is the open directory that contains the file, for contents that are read immediately and not kept.
    """

    __slots__ = ("_directory", "_parent", "_segments", "_size")

    def __init__(self, directory: HeldDirectory, segments: Segments, size: int, parent: KeptOpen | None = None) -> None:
        self._directory, self._segments, self._size, self._parent = directory, segments, size, parent

    def __len__(self) -> int:
        return self._size

    def __bool__(self) -> bool:
        return True

    def open(self) -> int:
        """Open the file for reading; the caller closes it."""
        return self._directory.open_file(self._segments)

    def join(self) -> bytes:
        """Read the whole file."""
        if self._parent is not None:
            return read_examined(self._parent.descriptor, host_bytes(self._segments[-1]))
        with Parent(self._directory, self._segments) as (directory, name):
            check_regular(os.stat(name, dir_fd=directory, follow_symlinks=False))
            return read_examined(directory, name)

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


def read_examined(directory: int, name: bytes, most: int = sys.maxsize) -> bytes:
    """Read an entry of an open directory that was just seen to be a regular file.

    Raises `OSError`: EFBIG for a file of more than `most` bytes, EINVAL if something else is there now.
    """
    descriptor = os.open(name, READ, dir_fd=directory)
    try:
        status = os.fstat(descriptor)
        check_regular(status)
        size = status.st_size
        if size > most:
            raise OSError(EFBIG, os.strerror(EFBIG))
        # In a small file, reading the holes takes less time than finding them.
        data = os.pread(descriptor, size, 0) if size <= PIECE else b""
        return data if len(data) == size else b"".join(checked_between(read_pieces(descriptor, 0, size)))
    finally:
        os.close(descriptor)


class ReadableDirectory(HeldDirectory):
    """A host directory whose entries can be read as nodes."""

    __slots__ = ()

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
            # The entry was replaced by something else between the two calls.
            if error.errno in (*ABSENT, EINVAL):
                return self.node(segments)
            raise

    def file(self, segments: Segments) -> Leaf | None:
        """Return a regular file as `node` does, to be read immediately; `None` for anything else."""
        try:
            kept = KeptOpen(self.open_directory(segments[:-1], PASSAGE))
            status = os.stat(host_bytes(segments[-1]), dir_fd=kept.descriptor, follow_symlinks=False)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise
        return self._file(segments, status, kept) if stat.S_ISREG(status.st_mode) else None

    def _file(self, segments: Segments, status: os.stat_result, parent: KeptOpen | None = None) -> Leaf:
        mode, at = stat.S_IMODE(status.st_mode), clamped(status.st_mtime_ns)
        if not stat.S_ISREG(status.st_mode):
            return leaves.special(SPECIALS[stat.S_IFMT(status.st_mode)], mode=mode, at=at)
        content = cast(Content, OnDisk(self, segments, status.st_size, parent))
        return leaves.file(content, mode=mode, at=at)

    def names(self, segments: Segments) -> list[tuple[str, Kind]]:
        """Return the name and kind of each entry of a directory, in any order.

        On most filesystems the listing includes the kind, so no entry is stat'ed; this takes a third of the time of
        `entries`.
        """
        descriptor = self.open_directory(segments)
        try:
            with os.scandir(descriptor) as listing:
                entries = _checked_between(listing)
                return [
                    (canonical_name(entry.name), "file" if entry.is_file(follow_symlinks=False) else _other_kind(entry))
                    for entry in entries
                ]
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
                        # The entry disappeared after it was listed.
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


def _checked_between(listing: Iterable[os.DirEntry[str]]) -> Iterable[os.DirEntry[str]]:
    """Yield the entries of a directory, checking for interruption now and then."""
    if not is_interruptible():
        return listing
    return chain.from_iterable(_strides(iter(listing)))


def _strides(listing: Iterator[os.DirEntry[str]]) -> Iterator[list[os.DirEntry[str]]]:
    while some := list(islice(listing, STRIDE)):
        check_interrupted()
        yield some


def _other_kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "link" if entry.is_symlink() else "other"


def _empty_directory(status: os.stat_result) -> FileTree:
    at = clamped(status.st_mtime_ns)
    return FileTree({}, (), stat.S_IMODE(status.st_mode), at, at)


def _link(target: bytes, status: os.stat_result) -> Leaf:
    return leaves.link(names.from_bytes(target), at=clamped(status.st_mtime_ns))
