"""Opening files and directories of the current user for reading, whatever their permission bits.

Bits that keep the owner out (`chmod 000`) are changed during the read and then restored, as the owner could do by hand.
For an entry that belongs to another user, they are not changed, and the system may refuse to open it.
"""

from __future__ import annotations

import os
import stat

from weakfs.platforms import O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_PATH, Opened
from weakfs.snapshots.directory.entries import READ

# Opens a handle to an entry that may not be read. It can be changed and reopened only through /proc.
HANDLE = O_PATH | O_NOFOLLOW | O_CLOEXEC

FILE_BITS = 0o400
# Permission to list names and to stat their entries.
DIRECTORY_BITS = 0o500


def open_file(name: str, directory: int, mode: int) -> int:
    """Open a file for reading. `mode` is its current mode; its bits are restored before this returns."""
    if mode & FILE_BITS:
        return os.open(name, READ, dir_fd=directory)
    descriptor, bits = _open_as_owner(name, directory, READ, FILE_BITS)
    put_back(descriptor, bits)
    return descriptor


def open_directory(name: str, directory: int, mode: int) -> tuple[int, int | None]:
    """Open a directory for reading; return the descriptor and the bits, for `close_directory`."""
    flags = READ | O_DIRECTORY
    if mode & DIRECTORY_BITS == DIRECTORY_BITS:
        return os.open(name, flags, dir_fd=directory), None
    return _open_as_owner(name, directory, flags, DIRECTORY_BITS)


def close_directory(descriptor: int, bits: int | None) -> None:
    """Close a directory, unless its descriptor is negative, and restore the bits that `open_directory` returned."""
    if descriptor >= 0:
        try:
            put_back(descriptor, bits)
        finally:
            os.close(descriptor)


def allow_reading(descriptor: int) -> int | None:
    """Make an open directory readable by its owner; return the bits to restore, `None` if none were changed."""
    return _allow(descriptor, DIRECTORY_BITS)


def put_back(descriptor: int, bits: int | None) -> None:
    """Restore the permission bits of an open file or directory."""
    if bits is not None:
        os.chmod(f"/proc/self/fd/{descriptor}", bits)


def _open_as_owner(name: str, directory: int, flags: int, needed: int) -> tuple[int, int | None]:
    with Opened(os.open(name, HANDLE, dir_fd=directory)) as handle:
        bits = _allow(handle, needed)
        if bits is None:
            return os.open(name, flags, dir_fd=directory), None
        opened = f"/proc/self/fd/{handle}"
        try:
            return os.open(opened, flags & ~O_NOFOLLOW), bits
        except BaseException:
            os.chmod(opened, bits)
            raise


def _allow(descriptor: int, needed: int) -> int | None:
    status = os.fstat(descriptor)
    bits = stat.S_IMODE(status.st_mode)
    # The entry may have been replaced by a link or a FIFO: leave it unchanged.
    is_kind = stat.S_ISDIR(status.st_mode) if needed == DIRECTORY_BITS else stat.S_ISREG(status.st_mode)
    if bits & needed == needed or not is_kind or status.st_uid != os.geteuid():
        return None
    path = f"/proc/self/fd/{descriptor}"
    if os.access(path, os.R_OK | (os.X_OK if needed == DIRECTORY_BITS else 0), effective_ids=True):
        # Root may read everything.
        return None
    os.chmod(path, bits | needed)
    return bits
