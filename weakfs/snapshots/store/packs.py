"""Pack files: many contents in one file, with an index at its end. Written once, never changed.

    header | contents, one after the other | index: (digest, offset, length) by digest | tail

The tail holds the offset of the index, its number of rows and its SHA-256. A pack is named after that SHA-256, so
packs with the same name are equal. Blocks of zeros are holes in the file. Writing 50,000 files of 2 kB takes 0.5 s with
a pack, and 0.7 to 1.9 s with SQLite.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from hashlib import sha256

from weakfs.platforms import NOT_A_REGULAR_FILE, Opened, open_regular_file
from weakfs.session.blobs.sparse import PIECE, SparseWriter
from weakfs.session.files.atomic_write import sync_folder
from weakfs.snapshots.errors import StoreDamaged
from weakfs.snapshots.store.atomic_files import open_temporary, remove

HEADER = b"weakfs pack v1\n\0"
END = b"weakfs pack end\n"
ROW = struct.Struct("<32sQQ")
ROW_DIGEST = struct.Struct("<32s16x")
TAIL = struct.Struct("<QQ32s16s")
SUFFIX = ".pack"

# The place of a blob in its pack: (offset, length).
Place = tuple[int, int]


class PackWriter:
    """A pack that is being written, under a temporary name until `finish`."""

    def __init__(self, folder: str, *, before_writing: Callable[[], object] = lambda: None) -> None:
        """Begin a pack in `folder`; `before_writing()` is called before its file grows, and may raise to refuse."""
        self.places: dict[bytes, Place] = {}
        self._folder = folder
        self._before_writing = before_writing
        self._offset = len(HEADER)
        self._waiting: list[bytes] = [HEADER]
        self._waiting_size = len(HEADER)
        self._is_ending = False
        self._descriptor, self._path = open_temporary(folder)
        self._writer = SparseWriter(self._descriptor)

    @property
    def outstanding(self) -> int:
        """How many more bytes will be written to the file if nothing else is added."""
        index = 0 if self._is_ending else len(self.places) * ROW.size + TAIL.size
        return self._waiting_size + index

    def add(self, digest: bytes, content: bytes) -> None:
        """Append one blob."""
        size = len(content)
        self.places[digest] = (self._offset, size)
        self._append(content)

    def add_pieces(self, work: Callable[[Callable[[bytes], None]], bytes], is_known: Callable[[bytes], bool]) -> bytes:
        """Let `work` append a blob piece by piece and return its digest.

        If the blob is already known, or `work` raises, the pack is left unchanged.
        """
        self._flush()
        start = self._offset
        is_new = False
        try:
            digest = work(self._append)
            is_new = digest not in self.places and not is_known(digest)
        finally:
            if not is_new:
                self._cut(start)
        if is_new:
            self.places[digest] = (start, self._offset - start)
        return digest

    def finish(self) -> str | None:
        """Sync the pack and return its path; return `None`, and leave no file, if nothing was added."""
        if not self.places:
            self.abandon()
            return None
        rows = b"".join(ROW.pack(digest, *self.places[digest]) for digest in sorted(self.places))
        checksum = sha256(rows).digest()
        start = self._offset
        self._is_ending = True
        self._append(rows)
        self._append(TAIL.pack(start, len(self.places), checksum, END))
        self._flush()
        os.fsync(self._descriptor)
        path = os.path.join(self._folder, checksum.hex() + SUFFIX)
        os.rename(self._path, path)
        sync_folder(self._folder)
        os.close(self._descriptor)
        self._descriptor = -1
        return path

    def abandon(self) -> None:
        """Remove the unfinished pack."""
        if self._descriptor >= 0:
            remove(self._path)
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, data: bytes) -> None:
        self._waiting.append(data)
        self._offset += len(data)
        self._waiting_size += len(data)
        if self._waiting_size >= PIECE:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._before_writing()
            self._writer.write(b"".join(self._waiting))
            self._waiting.clear()
            self._waiting_size = 0

    def _cut(self, offset: int) -> None:
        self._waiting.clear()
        self._waiting_size = 0
        self._writer.cut(offset)
        self._offset = offset


def open_pack(path: str) -> int:
    """Open a pack for reading. Raises `StoreDamaged` if it is not a regular file."""
    try:
        return open_regular_file(path)
    except OSError as error:
        if error.errno not in NOT_A_REGULAR_FILE:
            raise
        raise _damaged(path, "it is not a regular file") from None


class Rows:
    """The index of a pack: the `(digest, offset, length)` of everything in it."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __iter__(self) -> Iterator[tuple[bytes, int, int]]:
        return ROW.iter_unpack(self._data)

    def __len__(self) -> int:
        return len(self._data) // ROW.size

    def __getitem__(self, number: int) -> tuple[bytes, int, int]:
        row: tuple[bytes, int, int] = ROW.unpack_from(self._data, number * ROW.size)
        return row

    def digests(self) -> list[bytes]:
        """Return all digests, in the order of the rows."""
        return [digest for (digest,) in ROW_DIGEST.iter_unpack(self._data)]


def read_index(path: str) -> Rows:
    """Return the index of a pack; raise `StoreDamaged` if the pack is incomplete."""
    with Opened(open_pack(path)) as descriptor:
        size = os.fstat(descriptor).st_size
        if size < len(HEADER) + TAIL.size:
            raise _damaged(path, "it is truncated")
        if os.pread(descriptor, len(HEADER), 0) != HEADER:
            raise _damaged(path, "it does not start with a pack's header")
        start, count, checksum, end = TAIL.unpack(os.pread(descriptor, TAIL.size, size - TAIL.size))
        if end != END or start + count * ROW.size + TAIL.size != size:
            raise _damaged(path, "it does not end with a pack's tail")
        rows = read_at(descriptor, start, count * ROW.size)
    if sha256(rows).digest() != checksum:
        raise _damaged(path, "its index does not match the checksum")
    return Rows(rows)


def read_at(descriptor: int, offset: int, size: int) -> bytes:
    """Read `size` bytes; fewer only at the end of the file."""
    data = os.pread(descriptor, size, offset)
    if len(data) == size or not data:
        return data
    pieces = [data]
    got = len(data)
    while got < size and (data := os.pread(descriptor, size - got, offset + got)):
        pieces.append(data)
        got += len(data)
    return b"".join(pieces)


def _damaged(path: str, what: str) -> StoreDamaged:
    return StoreDamaged(
        f"cannot read the pack {path!r}: {what}; restore the file from a copy, or remove it and drop the snapshots "
        f"that need it"
    )
