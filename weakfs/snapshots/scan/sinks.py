"""Where a survey puts the contents that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Protocol

from attrs import define

from weakfs.session import MissingBlob
from weakfs.session.blobs.blob import ContentSource, Stored, digest_of


@define(eq=False)
class StatToken:
    """What vouches that all below a directory was put into one place, and is still there."""

    place: str
    # Set when what was put in is durable; until then only its own writer may go by it.
    is_finished: bool = False


class Sink(Protocol):
    """Takes the contents and the directories of a survey."""

    @property
    def token(self) -> StatToken | None:
        """What the directories that are made with this sink carry."""
        ...

    @property
    def source(self) -> ContentSource:
        """Where the contents that were put in can be read."""
        ...

    def trusts(self, token: StatToken | None) -> bool:
        """Tell whether what is below a directory with that token need not be put in again."""
        ...

    def keeps(self, digest: bytes) -> bool:
        """Tell whether a content is here, or need not be."""
        ...

    def add(self, content: bytes) -> Stored | bytes:
        """Take a content, and give what stands for it in a tree."""
        ...

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored | bytes:
        """Take a content of `size` bytes that is too large for memory. If the pieces raise, nothing is kept."""
        ...

    def add_manifest(self, manifest: bytes) -> bytes | None:
        """Take a directory's manifest and give its digest; `None` where no manifests are kept."""
        ...


class HashOnly:
    """A sink that keeps nothing: the tree has every digest, and no content can be read from it."""

    token = None

    @property
    def source(self) -> ContentSource:
        """Itself; see `read`."""
        return self

    def trusts(self, token: StatToken | None) -> bool:
        """All that is known is good enough."""
        return True

    def keeps(self, digest: bytes) -> bool:
        """No content has to be anywhere."""
        return True

    def add(self, content: bytes) -> Stored | bytes:
        """Give the reference to a content."""
        return Stored(digest_of(content), len(content), self)

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored | bytes:
        """Give the reference to a large content."""
        return Stored(digest_of_pieces(size, pieces, lambda piece: None), size, self)

    def add_manifest(self, manifest: bytes) -> None:
        """Keep nothing."""

    def read(self, digest: bytes) -> bytes:
        """Raise `MissingBlob`."""
        raise MissingBlob(
            f"the content {digest.hex()} was not kept: the directory was only scanned; take a snapshot to keep it",
            digest=digest,
        )


class InMemory(HashOnly):
    """A sink whose trees hold the contents themselves; larger ones than `max_size` are only hashed."""

    def __init__(self, *, max_size: int | None = None) -> None:
        self.max_size = max_size

    def trusts(self, token: StatToken | None) -> bool:
        """Nothing that is only a reference."""
        return False

    def keeps(self, digest: bytes) -> bool:
        """No reference will do."""
        return False

    def add(self, content: bytes) -> Stored | bytes:
        """Give the content back."""
        if self.max_size is not None and len(content) > self.max_size:
            return super().add(content)
        return content

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored | bytes:
        """Give a large content back as well: it is wanted here."""
        if self.max_size is not None and size > self.max_size:
            return super().add_pieces(size, pieces)
        return b"".join(pieces)


def digest_of_pieces(size: int, pieces: Iterable[bytes], on_piece: Callable[[bytes], object]) -> bytes:
    """Give the digest of a content that comes in pieces."""
    found = sha256(b"blob %d\0" % size)
    for piece in pieces:
        found.update(piece)
        on_piece(piece)
    return found.digest()
