"""Copying between two open files: by reflink where the filesystem shares blocks, else in the kernel, else in pieces.

Holes stay holes. See ioctl_ficlone(2) and copy_file_range(2).
"""

from __future__ import annotations

import errno
import fcntl
import os

from weakfs.session.sparse import PIECE, data_extents

# _IOW(0x94, 9, int), the same number on every architecture but alpha, mips, powerpc and sparc, where it is refused.
FICLONE = 0x40049409

# What says that a kernel or filesystem cannot do something, so that the next way is tried.
UNSUPPORTED = (
    *(errno.EXDEV, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOTTY, errno.ENOSYS, errno.EINVAL, errno.EPERM),
    *(errno.EBADF, errno.ETXTBSY, errno.EISDIR, errno.EACCES),
)


def copy_file(source: int, target: int) -> int:
    """Make `target` hold what `source` holds, and return the size. Both are regular files, open for that.

    `target` is cut to nothing first. Bytes do not pass through this process unless nothing else works; then a piece
    is held at a time.
    """
    os.ftruncate(target, 0)
    try:
        fcntl.ioctl(target, FICLONE, source)
        return os.fstat(target).st_size
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
    size = os.fstat(source).st_size
    copied = 0
    in_kernel = True
    for start, stop in data_extents(source, size):
        offset = start
        while offset < stop:
            count = 0
            if in_kernel:
                count = _copied_in_kernel(source, target, offset, stop)
                in_kernel = count > 0
            if not count:
                count = _copied_in_pieces(source, target, offset, stop)
            if not count:
                # It was cut shorter meanwhile.
                break
            offset += count
        copied = max(copied, offset)
    size = min(size, max(os.fstat(source).st_size, copied))
    if os.fstat(target).st_size != size:
        os.ftruncate(target, size)
    return size


def _copied_in_kernel(source: int, target: int, offset: int, stop: int) -> int:
    try:
        return os.copy_file_range(source, target, stop - offset, offset, offset)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        return 0


def _copied_in_pieces(source: int, target: int, offset: int, stop: int) -> int:
    piece = os.pread(source, min(PIECE, stop - offset), offset)
    done = 0
    while done < len(piece):
        done += os.pwrite(target, piece[done:], offset + done)
    return len(piece)
