"""Consistent reads of a file that other processes may be writing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import cast

from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.sparse import PIECE, has_holes_of, read_pieces
from weakfs.snapshots.directory.permissions import open_file
from weakfs.snapshots.scan.manifests import Status
from weakfs.snapshots.scan.sinks import Sink

# Files up to this size are read in one piece.
SMALL = 4 * PIECE

# The maximum size of the holes in a file. A hole takes up no space on the disk, but takes as long to hash as data.
MAX_HOLES = 16 << 30

# How many times to read a file that changes during the read.
ATTEMPTS = 4

# Implemented in C, so it is the fastest way to get five fields of a status.
status_of = cast(
    "Callable[[os.stat_result], Status]", attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
)


class Swapped(Exception):
    """Raised if the entry is gone or is no longer of the same kind."""


class _Changed(Exception):
    """Raised if the file changed while it was read."""


def read_file(name: str, directory: int, status: Status, sink: Sink) -> tuple[Stored | bytes, Status]:
    """Add a file's content to a sink; return its reference there and the status at the time of the read.

    A file that changes while it is read is read again; if it never stops changing, the last read is returned with a
    status that must not be trusted. Raises `Swapped` if the entry is gone or is of another kind now, and `OSError` if
    the file cannot be read.
    """
    content: Stored | bytes
    for attempt in range(1, ATTEMPTS + 1):
        is_last = attempt == ATTEMPTS
        try:
            descriptor = open_file(name, directory, status[0])
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.ENOTDIR):
                raise Swapped from None
            raise
        try:
            if status[1] > SMALL or attempt > 1:
                status = status_of(os.fstat(descriptor))
            if not stat.S_ISREG(status[0]):
                raise Swapped
            if status[1] > SMALL:
                content, status_then = _read_large(descriptor, status, sink, is_last)
            else:
                data = _read_small(descriptor, status[1], is_last)
                status_then = status_of(os.fstat(descriptor))
                if not stat.S_ISREG(status_then[0]):
                    raise Swapped
                if not is_last and (status_then != status or len(data) != status[1]):
                    raise _Changed
                content = sink.add(data)
            if status_then == status and len(content) == status[1]:
                return content, status
            mode, _, mtime, _, inode = status_then
            return content, (mode, len(content), mtime, 0, inode)
        except _Changed:
            if is_last:
                raise OSError(errno.EBUSY, "it becomes shorter every time it is read") from None
        except (IsADirectoryError, BlockingIOError):
            # A directory, or a FIFO that others write to.
            raise Swapped from None
        finally:
            os.close(descriptor)
    raise AssertionError("the last attempt returns or raises")


def _read_small(descriptor: int, size: int, is_last: bool) -> bytes:
    """Read to the end; before the last attempt, only far enough to detect that the file grew."""
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    pieces = [data]
    got = len(data)
    most = SMALL if is_last else size
    while got <= most and (data := os.read(descriptor, min(PIECE, most + 1 - got))):
        pieces.append(data)
        got += len(data)
    return b"".join(pieces)[: most if is_last else None]


def _read_large(descriptor: int, status: Status, sink: Sink, is_last: bool) -> tuple[Stored | bytes, Status]:
    """Add to the sink as many bytes as the file has now. Raises `OSError` (EFBIG) if too many of them are in holes."""
    size = status[1]
    then = status
    if size > MAX_HOLES and has_holes_of(descriptor, size, MAX_HOLES):
        raise OSError(errno.EFBIG, f"it is a sparse file of {size} bytes, of which more than {MAX_HOLES} are holes")

    def pieces() -> Iterator[bytes]:
        nonlocal then
        left = size
        for piece in read_pieces(descriptor, 0, size):
            left -= len(piece)
            yield piece
        if left:
            raise _Changed
        then = status_of(os.fstat(descriptor))
        if then != status and not is_last:
            raise _Changed

    content = sink.add_pieces(size, pieces())
    return content, then
