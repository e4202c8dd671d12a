"""A host directory whose entries are reached from its open descriptor, segment by segment, never through a link.

A path is a tuple of segments as in the tree. Leading ".." segments leave the root; only a filesystem that follows
links anywhere (`follow_symlinks="allow"`) creates such paths. Errors are the operating system's own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, ESTALE
from threading import get_ident

from weakfs.platforms import O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_PATH
from weakfs.reducers.tree.node import Segments
from weakfs.snapshots.directory import entries as own
from weakfs.snapshots.directory import openat2

DIRECTORY = own.DIRECTORY
# Opens a directory that may be searched even if it may not be listed.
PASSAGE = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC

# Errors meaning that nothing is at a path: no entry, a non-directory above it, a name that no entry can have.
ABSENT = (ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG, ESTALE)


class HeldDirectory:
    """A host directory, held open: replacing a directory on its path later has no effect.

    Raises `FileNotFoundError` or `NotADirectoryError` if there is no such directory. A link is resolved only once,
    here. For a directory that is already open, such as one in another mount namespace, pass its `descriptor`; `root` is
    then only a name for messages.
    """

    __slots__ = ("__weakref__", "_kept", "descriptor", "lasting_inode", "root")

    def __init__(self, root: str, descriptor: int | None = None) -> None:
        self.root = os.path.realpath(root) if descriptor is None else root
        self.descriptor = os.open(self.root, DIRECTORY) if descriptor is None else descriptor
        # The inode number of the directory, if that identifies it for as long as it exists.
        self.lasting_inode: int | None = None
        # The directory that each thread keeps open: its path and descriptor.
        self._kept: dict[int, tuple[Segments, int]] = {}

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self.descriptor)

    def open_directory(self, segments: Segments, flags: int = DIRECTORY) -> int:
        """Open a directory; the caller closes it."""
        if not segments:
            return os.open(".", flags, dir_fd=self.descriptor)
        parts = own.host_path(segments)
        opened: Callable[..., int] = os.open
        # Opening two segments takes 3.0 µs in one call, and 4.9 µs in two.
        if len(parts) > 1 and openat2.is_available():
            parts, opened = _joined(parts), openat2.open_directory
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

    @contextmanager
    def keeping_open(self, segments: Segments) -> Iterator[None]:
        """Keep a directory open during the block, so that this thread need not open it again for each of its entries.

        The block must not move the directory, and must not be nested in another. Without this, a write opened its
        parent 18 times.
        """
        thread, descriptor = get_ident(), self.open_directory(segments, PASSAGE)
        self._kept[thread] = segments, descriptor
        try:
            yield
        finally:
            self._kept.pop(thread, None)
            os.close(descriptor)

    def kept_open(self, segments: Segments) -> int | None:
        """Return the descriptor of a directory that this thread keeps open; `None` for others."""
        kept = self._kept.get(get_ident())
        return kept[1] if kept is not None and kept[0] == segments else None

    def open_file(self, segments: Segments) -> int:
        """Open a regular file for reading; other kinds of entries are never opened in a way that could affect them."""
        with Parent(self, segments) as (directory, name):
            check_regular(os.stat(name, dir_fd=directory, follow_symlinks=False))
            descriptor = os.open(name, own.READ, dir_fd=directory)
        try:
            check_regular(os.fstat(descriptor))
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def status(self, segments: Segments) -> os.stat_result | None:
        """Return the status of an entry itself; `None` if nothing is there."""
        if not segments:
            return os.fstat(self.descriptor)
        kept = self.kept_open(segments)
        if kept is not None:
            return os.fstat(kept)
        try:
            with Parent(self, segments) as (directory, name):
                return os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise


def check_regular(status: os.stat_result) -> None:
    """Raise `OSError` (EINVAL) for anything but a regular file."""
    if not stat.S_ISREG(status.st_mode):
        raise OSError(EINVAL, "it is not a regular file")


class Parent:
    """The directory that contains a path's last name: `(descriptor, name)`, closed on exit."""

    __slots__ = ("_descriptor", "_directory", "_segments")

    def __init__(self, directory: HeldDirectory, segments: Segments) -> None:
        self._directory, self._segments = directory, segments

    def __enter__(self) -> tuple[int, bytes]:
        above, name = self._segments[:-1], own.host_bytes(self._segments[-1])
        kept = self._directory.kept_open(above)
        self._descriptor = self._directory.open_directory(above, PASSAGE) if kept is None else -1
        return self._descriptor if kept is None else kept, name

    def __exit__(self, *_: object) -> None:
        if self._descriptor >= 0:
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
