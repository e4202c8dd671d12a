"""Contents that lie elsewhere: in a store, or beside a session file. Known by digest, read when somebody asks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Protocol, cast, final, runtime_checkable

from weakfs.session.errors import MissingBlob

logger = logging.getLogger("weakfs.session")


class ContentSource(Protocol):
    """A place that holds contents by digest."""

    def read(self, digest: bytes) -> bytes:
        """Give a content; `MissingBlob` that names the digest if it is not there or is another by now."""
        ...


class PieceSource(ContentSource, Protocol):
    """A source that need not give a content as a whole."""

    def read_pieces(self, content: Stored) -> Iterator[bytes]:
        """Give a content piece by piece."""
        ...


@runtime_checkable
class FileSource(Protocol):
    """A source in whose files contents lie as they are, so that the system can copy them."""

    def open_content(self, digest: bytes) -> tuple[int, int] | None:
        """Open the file that a content lies in: descriptor and offset. `None` where it is not so; the caller closes."""
        ...


@runtime_checkable
class Surveyed(Protocol):
    """A source that can tell what it holds without reading it."""

    def has(self, digest: bytes) -> bool:
        """Tell whether a content is there."""
        ...


# Larger contents are not read as a whole where that can be avoided.
LARGE = 1 << 20


@final
class Stored:
    """A reference to a content: its digest (see `digest_of`), its size in bytes, and where it is read.

    Two of them are equal if they stand for the same content, wherever that lies.
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
        """Read the content; nothing is kept. `MissingBlob` if it is not where it should be."""
        return self.source.read(self.digest)

    def pieces(self) -> Iterator[bytes]:
        """Read the content piece by piece if it is large and its source can do that, else as one.

        `MissingBlob` if it is not where it should be, or after the last piece if it was damaged.
        """
        read = getattr(self.source, "read_pieces", None) if self.size > LARGE else None
        return iter((self.join(),)) if read is None else cast(PieceSource, self.source).read_pieces(self)


class Joinable(Protocol):
    """Bytes that are joined when somebody asks."""

    def __len__(self) -> int: ...
    def join(self) -> bytes: ...


class Held:
    """A source in memory."""

    def __init__(self) -> None:
        self._contents: dict[bytes, bytes | Joinable] = {}

    def put(self, content: bytes) -> Stored:
        """Take a content in and give a reference to it."""
        return self.hold(digest_of(content), content)

    def hold(self, digest: bytes, content: bytes | Joinable) -> Stored:
        """Take a content in under the digest that it is said to have, which is looked at when it is read."""
        self._contents[digest] = content
        return Stored(digest, len(content), self)

    def has(self, digest: bytes) -> bool:
        """Tell whether a content was put in."""
        return digest in self._contents

    def read(self, digest: bytes) -> bytes:
        """Give a content; `MissingBlob` if it was not put in, or was another."""
        content = self._contents.get(digest)
        if content is None:
            raise MissingBlob(f"the content {digest.hex()} is not there", where="memory", digest=digest)
        return checked(digest, content if isinstance(content, bytes) else content.join(), "memory")


def digest_of(content: bytes) -> bytes:
    """Give the 32 bytes that a content is known by: its git object id as a blob, SHA-256 format."""
    if len(content) < LARGE:
        return sha256(b"blob %d\0" % len(content) + content).digest()
    # Not copied for that.
    found = sha256(b"blob %d\0" % len(content))
    found.update(content)
    return found.digest()


def checked(digest: bytes, content: bytes, where: str) -> bytes:
    """Give a content that was read under a digest; `MissingBlob` that names `where` if it is another one."""
    found = digest_of(content)
    if found != digest:
        raise MissingBlob(
            f"the content {digest.hex()} was damaged or changed: what is there has the digest {found.hex()}; "
            f"put it back from a copy",
            where=where,
            digest=digest,
        )
    return content


def content_found(digest: bytes, candidates: Iterable[Stored], others: Iterable[ContentSource]) -> bytes | None:
    """Read a content that is to be saved as a whole; see `content_written`."""
    found: list[bytes] = []

    def take(pieces: Iterable[bytes]) -> None:
        found[:] = pieces

    return b"".join(found) if content_written(digest, candidates, others, take) else None


def content_written(
    digest: bytes,
    candidates: Iterable[Stored],
    others: Iterable[ContentSource],
    write: Callable[[Iterable[bytes]], object],
) -> bool:
    """Give `write` the pieces of a content that is to be saved, from the first source that has it.

    `others` are sources that may have it as well, such as the stores of attached filesystems. Pieces that raise
    `MissingBlob` were those of a damaged copy, and `write` starts again with the next. Where no source has it the log
    names it, and false is returned: what is written then refers to a content that is missing. Only what needs it
    fails, and a session that could not be saved any more would lose everything else as well.
    """
    told: MissingBlob | None = None
    own = tuple(candidates)
    size = own[0].size
    for content in (*own, *(Stored(digest, size, source) for source in others)):
        try:
            write(_checked_pieces(content))
        except MissingBlob as error:
            told = told or error
        else:
            return True
    logger.warning("saved without a content that is nowhere any more: %s", told)
    return False


def _checked_pieces(content: Stored) -> Iterator[bytes]:
    if content.size > LARGE and hasattr(content.source, "read_pieces"):
        yield from content.pieces()
    else:
        yield checked(content.digest, content.join(), repr(content.source))
