"""Stored blobs: contents in a store or sidecar directory, identified by digest and read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast, final, runtime_checkable

from weakfs.session.errors import MissingBlob
from weakfs.session.logger import logger

if TYPE_CHECKING:
    from _hashlib import HASH


class ContentSource(Protocol):
    """A place that holds blobs by digest."""

    def read(self, digest: bytes) -> bytes:
        """Return a blob. Raises `MissingBlob` naming the digest if it is missing or has changed."""
        ...


class PieceSource(ContentSource, Protocol):
    """A source that can read a blob in pieces."""

    def read_pieces(self, content: Stored) -> Iterator[bytes]:
        """Yield a blob piece by piece."""
        ...


class SizedSource(ContentSource, Protocol):
    """A source that needs the size of a blob, so that it reads no more than that."""

    def read_content(self, content: Stored) -> bytes:
        """Return a blob as `read` does."""
        ...


@runtime_checkable
class FileSource(Protocol):
    """A source whose files contain blobs verbatim, so that the operating system can copy them."""

    def open_content(self, digest: bytes) -> tuple[int, int] | None:
        """Return a descriptor of the file that holds a blob, and the offset there, or `None`. The caller closes it."""
        ...


@runtime_checkable
class Indexed(Protocol):
    """A source that can tell what it holds without reading it."""

    def has(self, digest: bytes) -> bool:
        """Return whether the source holds a blob."""
        ...


# Larger blobs are read in pieces where possible.
LARGE = 1 << 20


@final
class Stored:
    """A reference to a stored blob: its digest (see `digest_of`), its size in bytes, and its source.

    Two references are equal if they identify the same blob, whatever their sources.
    """

    __slots__ = ("digest", "size", "source")

    def __init__(self, digest: bytes, size: int, source: ContentSource) -> None:
        self.digest = digest
        self.size = size
        self.source = source

    def __len__(self) -> int:
        return self.size

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return type(other) is Stored and self.digest == other.digest and self.size == other.size

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Stored {self.digest.hex()[:16]} of {self.size} bytes>"

    def join(self) -> bytes:
        """Read the blob without caching it. Raises `MissingBlob` if its source does not have it."""
        source = self.source
        return (
            cast(SizedSource, source).read_content(self)
            if hasattr(source, "read_content")
            else source.read(self.digest)
        )

    def pieces(self) -> Iterator[bytes]:
        """Yield the blob in pieces if it is large and its source can read pieces, else as one piece.

        Raises `MissingBlob` if its source does not have it, or after the last piece if it was damaged.
        """
        read = getattr(self.source, "read_pieces", None) if self.size > LARGE else None
        return iter((self.join(),)) if read is None else cast(PieceSource, self.source).read_pieces(self)


class Joinable(Protocol):
    """Bytes that are joined on demand."""

    def __len__(self) -> int: ...
    def join(self) -> bytes: ...


class Held:
    """A source in memory."""

    def __init__(self) -> None:
        self._contents: dict[bytes, bytes | Joinable] = {}

    def put(self, content: bytes) -> Stored:
        """Add a blob and return a reference to it."""
        return self.hold(digest_of(content), content)

    def hold(self, digest: bytes, content: bytes | Joinable) -> Stored:
        """Add a blob under its claimed digest, which is verified when it is read."""
        self._contents[digest] = content
        return Stored(digest, len(content), self)

    def has(self, digest: bytes) -> bool:
        """Return whether a blob was added."""
        return digest in self._contents

    def read(self, digest: bytes) -> bytes:
        """Return a blob. Raises `MissingBlob` if it was not added or does not match its digest."""
        content = self._contents.get(digest)
        if content is None:
            raise MissingBlob(f"the content {digest.hex()} is not in memory", where="memory", digest=digest)
        return checked(digest, content if isinstance(content, bytes) else content.join(), "memory")


def digest_of(content: bytes) -> bytes:
    """Return the 32-byte digest that identifies a blob: its git object id in the SHA-256 object format."""
    sha256 = _sha256()
    if len(content) < LARGE:
        return sha256(b"blob %d\0" % len(content) + content).digest()
    # Large contents are hashed without a copy.
    found = sha256(b"blob %d\0" % len(content))
    found.update(content)
    return found.digest()


def digest_of_pieces(size: int, pieces: Iterable[bytes]) -> bytes:
    """Return the digest of a blob of `size` bytes that comes in pieces."""
    found = _sha256()(b"blob %d\0" % size)
    for piece in pieces:
        found.update(piece)
    return found.digest()


def verified_pieces(
    digest: bytes, size: int, pieces: Iterable[bytes], damaged: Callable[[], Exception]
) -> Iterator[bytes]:
    """Yield the pieces of a blob of `size` bytes; at the end, raise `damaged()` if their digest is not `digest`."""
    found = _sha256()(b"blob %d\0" % size)
    for piece in pieces:
        found.update(piece)
        yield piece
    if found.digest() != digest:
        raise damaged()


@cache
def _sha256() -> Callable[[bytes], HASH]:
    # OpenSSL takes as long to load as ten modules here, and a session in memory hashes nothing before it is saved.
    # Importing it again for each digest may take longer than the digest of 3 KB.
    from hashlib import sha256

    return sha256


def checked(digest: bytes, content: bytes, where: str) -> bytes:
    """Return a blob that was read under a digest. Raises `MissingBlob` naming `where` if it does not match."""
    found = digest_of(content)
    if found != digest:
        raise MissingBlob(
            f"the content {digest.hex()} was damaged or changed: its digest is now {found.hex()}; "
            f"put it back from a copy",
            where=where,
            digest=digest,
        )
    return content


def content_found(digest: bytes, candidates: Iterable[Stored], others: Iterable[ContentSource]) -> bytes | None:
    """Read a blob that is to be saved, as a whole; see `content_written`."""
    parts: list[bytes] = []

    def take(pieces: Iterable[bytes]) -> None:
        parts[:] = pieces

    return b"".join(parts) if content_written(digest, candidates, others, take) else None


def content_written(
    digest: bytes,
    candidates: Iterable[Stored],
    others: Iterable[ContentSource],
    write: Callable[[Iterable[bytes]], object],
) -> bool:
    """Pass `write` the pieces of a blob that is to be saved, from the first source that has it.

    `others` are further sources that may have it, such as the stores of attached filesystems. If the pieces end in
    `MissingBlob`, the copy is damaged, and `write` starts again with the next copy. If no source has the blob, log that
    and return false: the saved file then refers to a missing blob. Only what needs that blob fails, whereas a session
    that could not be saved any more would lose everything else as well.
    """
    first_error: MissingBlob | None = None
    own = tuple(candidates)
    size = own[0].size
    for content in (*own, *(Stored(digest, size, source) for source in others)):
        try:
            write(checked_pieces(content))
        except MissingBlob as error:
            first_error = first_error or error
        else:
            return True
    logger().warning("saved without a blob that no source has any more: %s", first_error)
    return False


def checked_pieces(content: Stored) -> Iterator[bytes]:
    """Yield a blob in pieces. Raises `MissingBlob`, at the latest after the last piece, if it was damaged."""
    if content.size > LARGE and hasattr(content.source, "read_pieces"):
        yield from content.pieces()
    else:
        yield checked(content.digest, content.join(), repr(content.source))
