"""Atomic replacement of files: after a crash, either the old file or the new one is there."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256


def write_atomically(path: str, pieces: Iterable[bytes]) -> None:
    """Write `pieces` to `path` in order: to a temporary file beside it, fsync, rename, fsync of the folder.

    Whatever happens, `path` holds either its old contents or all of the new ones. Two writers take turns. The temporary
    file's name is fixed, so that the next writer takes over what a killed process left. Raise `OSError` with the path
    and the cause.
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
            f"saved to {path!r}, but its folder could not be synced: {error.strerror}; a power cut may bring back the "
            f"old file, so save again once the cause is fixed",
        ) from error


def _write(path: str, pieces: Iterable[bytes]) -> None:
    folder, name = os.path.split(path)
    # The file's name may be as long as the filesystem allows; the temporary name is longer.
    short = name if len(os.fsencode(name)) < 200 else sha256(os.fsencode(name)).hexdigest()
    temporary = os.path.join(folder, f".{short}.tmp")
    descriptor = _locked(temporary)
    try:
        os.ftruncate(descriptor, 0)
        with suppress(FileNotFoundError):
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                kind = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
                raise OSError(kind, "it is not a regular file")
            os.fchmod(descriptor, status.st_mode & 0o777)
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException:
        _remove(temporary)
        raise
    finally:
        os.close(descriptor)


def unsaved(path: str, error: OSError) -> OSError:
    """Return an error that names the file that could not be saved; `OSError` picks the subclass of the errno."""
    return OSError(
        error.errno,
        f"cannot save to {path!r}: {error.strerror}; the last saved version is unchanged, fix the cause and save again",
    )


def _locked(temporary: str) -> int:
    """Open and lock the temporary file; another writer may rename it away while we wait."""
    while True:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(
                    errno.EINVAL, "cannot save: something else has the temporary file's name; remove it", temporary
                )
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(descriptor), os.stat(temporary, follow_symlinks=False)):
                return descriptor
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def sync_folder(folder: str) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
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
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if call is None:
            os.sync()
        elif call(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(descriptor)
