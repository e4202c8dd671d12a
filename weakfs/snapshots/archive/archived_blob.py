"""Contents inside an archive: identified by digest, read at their offset in the archive."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable, Iterator
from typing import IO, Protocol, cast

from weakfs.session import MissingBlob
from weakfs.session.blobs.blob import Stored, checked, checked_pieces, verified_pieces
from weakfs.session.blobs.sparse import PIECE
from weakfs.session.interruption import checked_between

ROW = struct.Struct("<32sQQ")


class Ranged(Protocol):
    """A source that can read part of a blob."""

    def read_range(self, digest: bytes, offset: int, size: int) -> bytes:
        """Return `size` bytes of a blob from `offset` on, unverified; fewer at its end."""
        ...


class Archived:
    """The contents of one archive: a source of the contents whose offsets are known."""

    def __init__(self, data: Stored | bytes) -> None:
        """Wrap a stored archive. If its source cannot read ranges, the archive is read whole when needed."""
        self._data = data
        self._size = len(data)
        self._places: dict[bytes, tuple[int, int]] = {}

    @property
    def size(self) -> int:
        """The size of the archive in bytes."""
        return self._size

    def __repr__(self) -> str:
        return f"<Archived {self._data!r:.60}>"

    def hold(self, digest: bytes, offset: int, size: int) -> Stored:
        """Record the place of a blob in the archive, and return a reference to it."""
        self._places[digest] = offset, size
        return Stored(digest, size, self)

    def read(self, digest: bytes) -> bytes:
        """Return a blob; raise `MissingBlob` if it is not in the archive or the archive has changed."""
        offset, size = self._place(digest)
        return checked(digest, self.read_range_of_all(offset, size), repr(self))

    def read_pieces(self, content: Stored) -> Iterator[bytes]:
        """Yield a blob piece by piece; raise `MissingBlob` after the last piece if it was damaged."""

        def damaged() -> MissingBlob:
            return MissingBlob(
                f"the content {content.digest.hex()} was damaged in its archive; restore the archive from a copy",
                where=repr(self),
                digest=content.digest,
            )

        yield from verified_pieces(content.digest, content.size, self._pieces_of(content.digest), damaged)

    def _pieces_of(self, digest: bytes) -> Iterator[bytes]:
        offset, left = self._place(digest)
        while left and (piece := self.read_range_of_all(offset, min(PIECE, left))):
            offset, left = offset + len(piece), left - len(piece)
            yield piece

    def read_range_of_all(self, offset: int, size: int) -> bytes:
        """Return a range of the archive itself."""
        data = self._data
        if isinstance(data, Stored):
            ranged = getattr(data.source, "read_range", None)
            if ranged is not None:
                return cast(Ranged, data.source).read_range(data.digest, offset, size)
            data = self._data = data.join()
        return data[offset : offset + size]

    def check(self) -> None:
        """Raise `MissingBlob` if the archive was damaged or changed. Reads it whole.

        The contents of the archive would not show that: their digests are computed when the archive is unpacked, and so
        always match.
        """
        if isinstance(self._data, Stored):
            for _ in checked_between(checked_pieces(self._data)):
                pass

    def stream(self) -> IO[bytes]:
        """Open the archive for reading."""
        return io.BufferedReader(_Stream(self, self._size), PIECE)

    def with_index(self, index: bytes) -> Archived:
        """Load the offsets of all contents from an index that `index_of` made."""
        self._places.update((digest, (offset, size)) for digest, offset, size in ROW.iter_unpack(index))
        return self

    def _place(self, digest: bytes) -> tuple[int, int]:
        place = self._places.get(digest)
        if place is None:
            raise MissingBlob(
                f"the content {digest.hex()} is not in its archive; restore the archive from a copy",
                where=repr(self),
                digest=digest,
            )
        return place


class _Stream(io.RawIOBase):
    def __init__(self, archived: Archived, size: int) -> None:
        self._archived = archived
        self._size = size
        self._offset = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._size}[whence]
        self._offset = max(0, start + offset)
        return self._offset

    def tell(self) -> int:
        return self._offset

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # any writable buffer
        piece = self._archived.read_range_of_all(self._offset, len(buffer))
        buffer[: len(piece)] = piece
        self._offset += len(piece)
        return len(piece)


def index_of(rows: Iterable[tuple[bytes, int, int]]) -> bytes:
    """Return the index of contents: `(digest, offset, size)` rows in any order."""
    return b"".join(ROW.pack(*row) for row in sorted(set(rows)))
