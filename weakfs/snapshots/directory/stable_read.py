"""Reading one file that others may be writing."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import cast

from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.sparse import PIECE, read_pieces
from weakfs.snapshots.directory.permissions import open_file
from weakfs.snapshots.scan.sinks import Sink
from weakfs.snapshots.store.manifests import Status

# Files up to this size are read whole.
SMALL = 4 * PIECE

# How often a file that changes while it is read is read again.
ATTEMPTS = 4

# In C, and so the cheapest way to take five fields of a status.
status_of = cast(
    "Callable[[os.stat_result], Status]", attrgetter("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino")
)


class Swapped(Exception):
    """The entry is gone, or another kind of thing by now."""


class _Changed(Exception):
    """The file changed while it was read."""


def read_file(name: str, directory: int, status: Status, sink: Sink) -> tuple[Stored | bytes, Status]:
    """Put a file's content into a sink: what stands for it there, and the status that it was read under.

    A file that changes while it is read is read again; one that never stands still is taken as it was read last,
    with a status that is not to be trusted. Raises `Swapped`; `OSError` for what cannot be read.
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
                raise OSError(errno.EBUSY, "it is cut shorter whenever it is read") from None
        finally:
            os.close(descriptor)
    raise AssertionError("the last attempt returns or raises")


def _read_small(descriptor: int, size: int, is_last: bool) -> bytes:
    """Read to the end, and in the first attempts no further than it takes to see that the file grew."""
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
    """Put as many bytes into the sink as the file has now."""
    size = status[1]
    then = status

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
