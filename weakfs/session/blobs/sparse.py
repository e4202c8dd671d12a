"""Sparse files: holes are neither read from the disk nor written to it. See lseek(2), SEEK_HOLE and SEEK_DATA.

Every whole block of zeros becomes a hole, wherever it comes from. Readers see the same contents either way.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator

# Files are read and written in pieces of this many bytes.
PIECE = 1 << 20
ZEROS = bytes(PIECE)

# Shorter runs of zeros are written out.
BLOCK = 1 << 16
ZERO_BLOCK = bytes(BLOCK)

# Errors that mean a filesystem cannot report holes.
UNKNOWN = (errno.EINVAL, errno.ENOTSUP, errno.ESPIPE)


def read_pieces(descriptor: int, offset: int, size: int) -> Iterator[bytes]:
    """Yield `size` bytes from `offset` on in pieces, fewer only if the file ends. Holes are not read from the disk."""
    end = offset + size
    data_until = offset
    while offset < end:
        if offset >= data_until:
            start, data_until = _next_data(descriptor, offset, end)
            while offset < start:
                piece = ZEROS[: min(PIECE, start - offset)]
                offset += len(piece)
                yield piece
            if offset >= end:
                return
        piece = read_at(descriptor, min(PIECE, data_until - offset), offset)
        if not piece:
            return
        offset += len(piece)
        yield piece


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Read at most `size` bytes from `offset` on. The file position is moved where the system has no pread(2)."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def write_at(descriptor: int, data: bytes, offset: int) -> int:
    """Write `data`, or the beginning of it, at `offset`. Return the number of bytes written. See `read_at`."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.write(descriptor, data)


def _next_data(descriptor: int, offset: int, end: int) -> tuple[int, int]:
    """Return the start and end of the next data from `offset` on; both at most `end` and the file's own end."""
    size = min(end, os.fstat(descriptor).st_size)
    if offset >= size:
        # Past the end of the file: the next read returns nothing.
        return offset, end
    if not hasattr(os, "SEEK_DATA"):
        return offset, end
    try:
        start = min(os.lseek(descriptor, offset, os.SEEK_DATA), size)
        return start, min(os.lseek(descriptor, start, os.SEEK_HOLE), end) if start < size else end
    except OSError as error:
        if error.errno == errno.ENXIO:
            return size, end
        if error.errno in UNKNOWN:
            return offset, end
        raise


def data_extents(descriptor: int, offset: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each run of data, that is, each part without holes, between two offsets of a file."""
    while offset < end:
        start, stop = _next_data(descriptor, offset, end)
        if start >= end or stop <= start:
            return
        yield start, stop
        offset = stop


def has_holes_of(descriptor: int, size: int, most: int) -> bool:
    """Return whether the first `size` bytes of a file have more than `most` bytes of holes. O(runs of data)."""
    holes = offset = 0
    for start, stop in data_extents(descriptor, 0, size):
        holes += start - offset
        if holes > most:
            return True
        offset = stop
    return holes + size - offset > most


class SparseWriter:
    """Writes to an empty file, leaving holes for blocks of zeros."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.offset = 0
        # The position of the descriptor, and the length of the file: less than `offset` if a hole follows.
        self._end = 0

    def write(self, data: bytes) -> None:
        """Write all of `data`. If it ends in a hole, the file reaches its full length only in `finish`."""
        view = memoryview(data)
        written = 0
        # Compared as bytes: comparing views takes a hundred times as long.
        for start in range(0, len(data) - BLOCK + 1, BLOCK):
            if data[start : start + BLOCK] == ZERO_BLOCK:
                self._put(view[written:start])
                self.offset += BLOCK
                written = start + BLOCK
        self._put(view[written:])

    def finish(self) -> None:
        """Extend the file to the length of what was written."""
        if self._end < self.offset:
            os.ftruncate(self._descriptor, self.offset)

    def cut(self, offset: int) -> None:
        """Remove what was written from an offset on."""
        os.ftruncate(self._descriptor, offset)
        self._end = self.offset = os.lseek(self._descriptor, offset, os.SEEK_SET)

    def _put(self, view: memoryview) -> None:
        if view and self._end < self.offset:
            os.lseek(self._descriptor, self.offset, os.SEEK_SET)
        while view:
            written = os.write(self._descriptor, view)
            self._end = self.offset = self.offset + written
            view = view[written:]


def write_pieces(descriptor: int, pieces: Iterable[bytes]) -> int:
    """Write pieces to an empty file, with holes for blocks of zeros, and return the number of bytes."""
    writer = SparseWriter(descriptor)
    for piece in pieces:
        writer.write(piece)
    writer.finish()
    return writer.offset
