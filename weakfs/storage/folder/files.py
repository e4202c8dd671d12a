"""Calls to the operating system: opening without following links, whole writes, syncs, temporary files.

Everything that the folder engine changes on a disk goes through the few functions of this module, so that a test can
stop or record each call, or make it fail.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from errno import EEXIST, EINVAL, ENOENT, ENOTDIR, ENOTEMPTY, ENOTSUP

from weakfs.platforms import HAS_FILE_LOCKS, O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, fcntl

# The directory for files that do not have their final names yet, and for deleted streams. No encoded name starts with a
# dot.
TEMPORARY = ".temporary"

_READ = os.O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
_FOLDER = os.O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY
# The flags for an exclusive lock, without waiting; 0 on systems without file locks.
LOCK = fcntl.LOCK_EX | fcntl.LOCK_NB if HAS_FILE_LOCKS else 0
_counter = itertools.count()


class Descriptor:
    """An open file or directory, closed when nothing refers to it any more."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)


def open_root(path: str) -> Descriptor:
    """Open an engine's folder, which may be a link."""
    return Descriptor(os.open(path, os.O_RDONLY | O_CLOEXEC | O_DIRECTORY))


def open_folder(name: str, parent: Descriptor) -> Descriptor:
    """Open a directory in another one. Raises `NotADirectoryError` for a link."""
    return Descriptor(os.open(name, _FOLDER, dir_fd=parent.number))


def make_folder(name: str, parent: Descriptor, *, is_synced: bool) -> Descriptor:
    """Open a directory, creating it if it does not exist."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent.number)
        if is_synced:
            sync_folder(parent)
    return open_folder(name, parent)


def make_root(path: str, *, is_synced: bool) -> Descriptor:
    """Open an engine's folder, creating it and its parents if they do not exist."""
    missing: list[str] = []
    while not os.path.isdir(path):
        if os.path.lexists(path) and not os.path.isdir(path):
            raise NotADirectoryError(ENOTDIR, os.strerror(ENOTDIR), path)
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        if is_synced:
            sync_folder(open_root(os.path.dirname(folder)))
    return open_root(missing[0] if missing else path)


def open_file(name: str, folder: Descriptor, flags: int = os.O_RDONLY) -> Descriptor:
    """Open a regular file in a directory. Raises `OSError` (EINVAL) for a FIFO or a device, ELOOP for a link."""
    found = Descriptor(os.open(name, _READ | flags, 0o600, dir_fd=folder.number))
    if not stat.S_ISREG(os.fstat(found.number).st_mode):
        raise OSError(EINVAL, "it is not a regular file", name)
    return found


def size_of(file: Descriptor) -> int:
    """Return the size of an open file."""
    return os.fstat(file.number).st_size


def inode_of(file: Descriptor) -> int:
    """Return the inode number of an open file, which no other file has while it is open."""
    return os.fstat(file.number).st_ino


def size_under(name: str, folder: Descriptor, file: Descriptor) -> int | None:
    """Return the size of an open file; `None` if it no longer has this name in a directory."""
    status = os.fstat(file.number)
    try:
        found = os.stat(name, dir_fd=folder.number, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return status.st_size if os.path.samestat(status, found) else None


def is_removed(file: Descriptor) -> bool:
    """Return whether an open file or directory was removed."""
    return not os.fstat(file.number).st_nlink


def read_at(file: Descriptor, offset: int, size: int) -> bytes:
    """Read bytes at an offset; fewer only at the end of the file."""
    data = os.pread(file.number, size, offset)
    if len(data) == size or not data:
        return data
    pieces = [data]
    while data and (got := sum(map(len, pieces))) < size:
        data = os.pread(file.number, size - got, offset + got)
        pieces.append(data)
    return b"".join(pieces)


def read_all(name: str, folder: Descriptor) -> bytes:
    """Return the contents of a file in a directory."""
    file = open_file(name, folder)
    return read_at(file, 0, size_of(file))


def write_at(file: Descriptor, offset: int, data: bytes) -> None:
    """Write bytes at an offset, in one call if the system accepts that."""
    written = os.pwrite(file.number, data, offset)
    if written < len(data):
        view = memoryview(data)
        while written < len(data):
            written += os.pwrite(file.number, view[written:], offset + written)


def extend(file: Descriptor, end: int, data: bytes) -> int:
    """Write bytes at the end of a file, and return the new end. If that fails, cut the file off at the old end."""
    number = file.number
    try:
        if os.pwrite(number, data, end) < len(data):
            write_at(file, end, data)
    except BaseException:
        # If this fails as well, the file ends with a part of the bytes.
        with suppress(OSError):
            os.ftruncate(number, end)
        raise
    return end + len(data)


def lock_unchanged(folder: Descriptor, name: str, inode: int, end: int) -> bool:
    """Lock a directory if the file with a name in it still has this inode number and ends at `end`.

    Returns false, without the lock, if somebody has written to the file, removed or replaced it, or holds the lock.
    """
    try:
        fcntl.flock(folder.number, LOCK)
    except BlockingIOError:
        return False
    try:
        found = os.stat(name, dir_fd=folder.number, follow_symlinks=False)
        is_unchanged = found.st_size == end and found.st_ino == inode
    except OSError:
        is_unchanged = False
    if not is_unchanged:
        unlock(folder)
    return is_unchanged


def unlock(folder: Descriptor) -> None:
    """Release the lock of a directory."""
    fcntl.flock(folder.number, fcntl.LOCK_UN)


def cut(file: Descriptor, size: int) -> None:
    """Truncate a file."""
    os.ftruncate(file.number, size)


def sync_file(file: Descriptor) -> None:
    """Make the contents and the size of a file survive a power failure."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        fcntl.fcntl(file.number, full)  # on macOS fsync(2) leaves data in the cache of the disk
    else:
        os.fdatasync(file.number)


def sync_folder(folder: Descriptor) -> None:
    """Make the names in a directory survive a power failure."""
    try:
        os.fsync(folder.number)
    except OSError as error:
        # Some network filesystems cannot sync a directory; the rename is all that they guarantee.
        if error.errno not in (EINVAL, ENOTSUP):
            raise


def rename(name: str, folder: Descriptor, new_name: str, new_folder: Descriptor) -> None:
    """Rename a file or directory; a file that has the new name is replaced."""
    os.rename(name, new_name, src_dir_fd=folder.number, dst_dir_fd=new_folder.number)


def remove(name: str, folder: Descriptor) -> bool:
    """Remove a file; return whether there was one."""
    try:
        os.unlink(name, dir_fd=folder.number)
    except FileNotFoundError:
        return False
    return True


def remove_folder(name: str, parent: Descriptor) -> None:
    """Remove a directory and the files in it; links are not followed."""
    folder = open_folder(name, parent)
    for entry in os.listdir(folder.number):
        try:
            remove(entry, folder)
        except OSError:
            remove_folder(entry, folder)
    os.rmdir(name, dir_fd=parent.number)


def prune(name: str, parent: Descriptor) -> bool:
    """Remove a directory if it is empty."""
    try:
        os.rmdir(name, dir_fd=parent.number)
    except OSError as error:
        if error.errno in (ENOTEMPTY, EEXIST, ENOENT, ENOTDIR):
            return False
        raise
    return True


class TemporaryFolder:
    """An engine's directory of temporary files. Each file is locked by its writer, so that leftovers are recognized."""

    def __init__(self, root: Descriptor, *, is_synced: bool) -> None:
        self.folder = make_folder(TEMPORARY, root, is_synced=is_synced)
        self._remove_leftovers()

    def new_file(self) -> tuple[str, Descriptor]:
        """Create a temporary file; return its name, and the file."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | O_CLOEXEC | O_NOFOLLOW
        while True:
            name = _temporary_name()
            file = Descriptor(os.open(name, flags, 0o600, dir_fd=self.folder.number))
            if _is_ours(file):
                return name, file

    def new_folder(self) -> tuple[str, Descriptor]:
        """Create a temporary directory; return its name, and the directory."""
        while True:
            name = _temporary_name()
            os.mkdir(name, 0o700, dir_fd=self.folder.number)
            with suppress(FileNotFoundError):
                folder = open_folder(name, self.folder)
                if _is_ours(folder):
                    return name, folder

    def publish(
        self, pieces: Sequence[bytes], name: str, folder: Descriptor, *, is_synced: bool, is_new: bool = False
    ) -> None:
        """Write a file under a temporary name, and rename it into place.

        With `is_new`, raises `FileExistsError` if the name is taken.
        """
        temporary, file = self.new_file()
        try:
            write_at(file, 0, b"".join(pieces))
            if is_synced:
                sync_file(file)
            if is_new:
                os.link(temporary, name, src_dir_fd=self.folder.number, dst_dir_fd=folder.number)
                remove(temporary, self.folder)
            else:
                rename(temporary, self.folder, name, folder)
        except BaseException:
            remove(temporary, self.folder)
            raise
        if is_synced:
            sync_folder(folder)

    def discard(self, name: str, parent: Descriptor) -> str:
        """Move a directory into this one, so that it is no longer found; return its new name."""
        temporary = _temporary_name()
        rename(name, parent, temporary, self.folder)
        return temporary

    def _remove_leftovers(self) -> None:
        """Remove the files and directories that dead processes left behind."""
        for name in os.listdir(self.folder.number):
            with suppress(OSError):
                found = Descriptor(os.open(name, _READ, dir_fd=self.folder.number))
                fcntl.flock(found.number, LOCK)
                if stat.S_ISDIR(os.fstat(found.number).st_mode):
                    remove_folder(name, self.folder)
                else:
                    remove(name, self.folder)


def _is_ours(file: Descriptor) -> bool:
    """Lock a new temporary file; return false if another process has already removed it as a leftover."""
    fcntl.flock(file.number, fcntl.LOCK_EX)
    return os.fstat(file.number).st_nlink > 0


def _temporary_name() -> str:
    return f"{os.getpid()}-{next(_counter)}-{os.urandom(4).hex()}"
