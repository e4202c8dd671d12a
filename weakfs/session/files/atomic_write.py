"""Atomic replacement of files: after a crash, either the old file or the new one is there."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from tempfile import mkstemp

from weakfs.platforms import (
    HAS_DIRECTORY_DESCRIPTORS,
    HAS_FILE_LOCKS,
    O_CLOEXEC,
    O_NOFOLLOW,
    O_NONBLOCK,
    lock_unless_replaced,
)


def write_atomically(path: str, pieces: Iterable[bytes]) -> None:
    """Write `pieces` to `path` in order: to a temporary file next to it, fsync, rename, fsync of the folder.

    Whatever happens, `path` holds either its old contents or all of the new ones. Two writers take turns. The temporary
    file's name is fixed, so that the next writer reuses a file that a killed process left. Raises `OSError` with the
    path and the cause.

    Without file locks, as on Windows, each writer has its own temporary file, which stays behind if the writer is
    killed.
    """
    try:
        _write(path, pieces)
    except OSError as error:
        raise unsaved(path, error) from error
    try:
        sync_folder(os.path.dirname(path))
    except OSError as error:
        raise OSError(
            error.errno,
            f"saved to {path!r}, but its folder could not be synced: {error.strerror}; a power failure may bring back "
            f"the old file, so save again once the cause is fixed",
        ) from error


def _write(path: str, pieces: Iterable[bytes]) -> None:
    folder, name = os.path.split(path)
    # The file's name may be as long as the filesystem allows; the temporary name is longer.
    short = name if len(os.fsencode(name)) < 200 else sha256(os.fsencode(name)).hexdigest()
    if not HAS_FILE_LOCKS:
        return _write_unlocked(path, pieces, folder, f".{short}.")
    temporary = os.path.join(folder, f".{short}.tmp")
    descriptor = _locked(temporary)
    try:
        os.ftruncate(descriptor, 0)
        mode = _mode_of(path)
        if mode is not None:
            os.fchmod(descriptor, mode)
        _write_pieces(descriptor, pieces)
        os.rename(temporary, path)
    except BaseException:
        _remove(temporary)
        raise
    finally:
        os.close(descriptor)


def _write_unlocked(path: str, pieces: Iterable[bytes], folder: str, prefix: str) -> None:
    _mode_of(path)
    descriptor, temporary = mkstemp(prefix=prefix, suffix=".tmp", dir=folder or ".")
    try:
        try:
            _write_pieces(descriptor, pieces)
        finally:
            os.close(descriptor)
        # Windows cannot rename an open file, and only `replace` can overwrite another one.
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def _mode_of(path: str) -> int | None:
    """Return the permission bits of the file that is replaced, `None` if there is none.

    Raises `OSError` if it is not a file.
    """
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        kind = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
        raise OSError(kind, "it is not a regular file")
    return status.st_mode & 0o777


def _write_pieces(descriptor: int, pieces: Iterable[bytes]) -> None:
    for piece in pieces:
        write_all(descriptor, piece)
    os.fsync(descriptor)


def write_all(descriptor: int, data: bytes | bytearray | memoryview) -> None:
    """Write all bytes, in as many calls as necessary."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def unsaved(path: str, error: OSError) -> OSError:
    """Return an error that names the file that could not be saved; `OSError` picks the subclass of the errno."""
    return OSError(
        error.errno,
        f"cannot save to {path!r}: {error.strerror}; the last saved version is unchanged; fix the cause and save again",
    )


def _locked(temporary: str) -> int:
    """Open and lock the temporary file; another writer may rename it away while we wait."""
    while True:
        flags = os.O_WRONLY | os.O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(
                    errno.EINVAL,
                    "cannot save: the name of the temporary file is taken by something else; remove it",
                    temporary,
                )
        except BaseException:
            os.close(descriptor)
            raise
        if lock_unless_replaced(descriptor, temporary):
            return descriptor


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def sync_folder(folder: str) -> None:
    """Make the names in a folder survive a power failure. Does nothing on a system that cannot open a folder."""
    if not HAS_DIRECTORY_DESCRIPTORS:
        return
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network filesystems cannot sync a folder; the rename is the best they offer.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def sync_filesystem(path: str) -> None:
    """Make everything on the filesystem of `path` durable: one call for many files. See syncfs(2)."""
    descriptor = os.open(path, os.O_RDONLY | O_CLOEXEC)
    try:
        call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if call is None:
            os.sync()
        elif call(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(descriptor)
