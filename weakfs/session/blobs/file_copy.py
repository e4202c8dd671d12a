"""Copying between two open files: by reflink where the filesystem shares blocks, else in the kernel, else in pieces.

Holes are preserved. See ioctl_ficlone(2) and copy_file_range(2). Hard links are never used: anyone who changed one
file in place would change the other as well.
"""

from __future__ import annotations

import errno
import os
import sys

from weakfs.platforms import fcntl
from weakfs.session.blobs.sparse import PIECE, data_extents, read_at, write_at

# _IOW(0x94, 9, int) of <linux/fs.h>. The few architectures that number it differently reject it.
FICLONE = 0x40049409

# Bytes per call: signals are handled between calls.
AT_ONCE = 64 << 20

# Errors that mean a kernel or filesystem does not support an operation, so that the next method is tried.
UNSUPPORTED = frozenset(
    (errno.EXDEV, errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EACCES)
) | {errno.EBADF, errno.ETXTBSY}


def copy_file(source: int, target: int) -> int:
    """Copy all of `source` to `target`, and return the size. Both are descriptors of regular files.

    `target` is truncated first.
    """
    return copy_range(source, 0, os.fstat(source).st_size, target)


def copy_range(source: int, offset: int, size: int, target: int) -> int:
    """Copy `size` bytes of `source`, from `offset` on, to `target`, and return the number of bytes copied.

    Bytes do not pass through this process unless nothing else works; then it holds one piece at a time.
    """
    os.ftruncate(target, 0)
    if offset == 0 and size == os.fstat(source).st_size and _reflinked(source, target):
        return os.fstat(target).st_size
    size = max(0, min(size, os.fstat(source).st_size - offset))
    in_kernel = True
    for start, stop in data_extents(source, offset, offset + size):
        while start < stop:
            count = _copied_in_kernel(source, target, start, stop, offset) if in_kernel else 0
            in_kernel = count > 0
            count = count or _copied_in_pieces(source, target, start, stop, offset)
            if not count:
                # The source was truncated in the meantime.
                size = start - offset
                break
            start += count
    if os.fstat(target).st_size < size:
        os.ftruncate(target, size)
    return size


def _reflinked(source: int, target: int) -> bool:
    if sys.platform != "linux":
        return False
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        return False
    return True


def _copied_in_kernel(source: int, target: int, start: int, stop: int, offset: int) -> int:
    if sys.platform != "linux":
        return 0
    try:
        return os.copy_file_range(source, target, min(stop - start, AT_ONCE), start, start - offset)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        return 0


def _copied_in_pieces(source: int, target: int, start: int, stop: int, offset: int) -> int:
    piece = read_at(source, min(PIECE, stop - start), start)
    done = 0
    while done < len(piece):
        done += write_at(target, piece[done:], start - offset + done)
    return len(piece)
