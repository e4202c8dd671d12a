"""Atomic writes: a file appears complete or not at all, and has a temporary name until then.

A temporary file is locked by the process that writes it, so that files left by dead processes are recognized and
removed.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress

from weakfs.errors import fault
from weakfs.platforms import NOT_A_REGULAR_FILE, fcntl, lock_unless_replaced, open_regular_file
from weakfs.session.files.atomic_write import sync_folder, write_all

TEMPORARY = ".writing-"

# No file that `read_small` reads has more bytes.
SMALL = 1 << 24

_counter = itertools.count()


def read_small(path: str) -> bytes:
    """Return the contents of a small file. Raises `ValueError` if it is something else, and `OSError` with a remedy."""
    try:
        with os.fdopen(open_regular_file(path), "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > SMALL:
                raise ValueError(f"it has {size} bytes")
            return stream.read()
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in NOT_A_REGULAR_FILE:
            raise ValueError("it is not a regular file") from None
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: OSError) -> OSError:
    remedy = "check the disk and the permissions of the store"
    return fault(type(error), error.errno or errno.EIO, f"cannot read {path!r}: {error.strerror}; {remedy}")


def names_in(folder: str) -> list[str]:
    """Return the names in a directory of a store; none if it does not exist. Raises `OSError` with a remedy."""
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _unreadable(folder, error) from error


def make_folder(path: str) -> None:
    """Create a directory with mode 0700, and missing parents, so that they survive a power failure."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            # Another thread or process may have created it since.
            if not os.path.isdir(folder):
                raise NotADirectoryError(errno.ENOTDIR, f"{folder!r} is not a directory", folder) from None
        sync_folder(os.path.dirname(folder))


def remove(path: str) -> None:
    """Remove a file if it exists."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def open_temporary(folder: str) -> tuple[int, str]:
    """Create a temporary file that is locked while its descriptor is open; return `(descriptor, path)`."""
    while True:
        path = os.path.join(folder, f"{TEMPORARY}{os.getpid()}-{next(_counter)}")
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileExistsError:
            # The file was left by a process with the same id, or is in use by one in another process id namespace.
            continue
        try:
            # Another process may have removed the file as a leftover before it was locked.
            if lock_unless_replaced(descriptor, path):
                return descriptor, path
        except BaseException:
            remove(path)
            raise


def remove_leftovers(folder: str) -> None:
    """Remove the temporary files of dead processes."""
    for path in temporaries(folder):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)
        except BlockingIOError:
            continue
        finally:
            os.close(descriptor)


def temporaries(folder: str) -> Iterator[str]:
    """Yield the temporary files in a directory."""
    for name in names_in(folder):
        if name.startswith(TEMPORARY):
            yield os.path.join(folder, name)


@contextmanager
def new_file(path: str, data: bytes) -> Generator[Callable[[], None]]:
    """Write a new file under a temporary name; yield a function that publishes it at `path`, complete and synced.

    That function raises `FileExistsError` if the path exists. A file that is not published is removed on exit.
    """
    folder = os.path.dirname(path)
    descriptor, temporary = open_temporary(folder)

    def publish() -> None:
        try:
            os.link(temporary, path)
        except OSError as error:
            # No hard links here: a second writer of this name is detected only by checking first.
            if error.errno not in (errno.EPERM, errno.ENOTSUP) or os.path.lexists(path):
                raise
            os.rename(temporary, path)
        remove(temporary)
        sync_folder(folder)

    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
        yield publish
    finally:
        remove(temporary)
        os.close(descriptor)


def write_new(path: str, data: bytes) -> None:
    """Create a file at `path`, complete and synced; raise `FileExistsError` if the path exists."""
    with new_file(path, data) as publish:
        publish()


def write_over(path: str, data: bytes) -> None:
    """Create or replace the file at `path`, complete and synced."""
    folder = os.path.dirname(path)
    descriptor, temporary = open_temporary(folder)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException:
        remove(temporary)
        raise
    finally:
        os.close(descriptor)
    sync_folder(folder)


def size_of_files(folder: str) -> int:
    """Return the disk usage of the files in a directory and below it, not counting holes.

    Files that disappear in the meantime are not counted.
    """
    size = 0
    waiting = [folder]
    while waiting:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(waiting.pop()) as found:
            for entry in found:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(entry.path)
                    else:
                        size += min(status.st_size, status.st_blocks * 512)
    return size


def sync_tree(folder: str) -> None:
    """Make everything in a new directory survive a power failure."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync_file(os.path.join(place, name))
        sync_folder(place)


def sync_file(path: str) -> None:
    """Make the contents of a file survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
