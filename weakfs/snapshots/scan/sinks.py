"""Sinks: where a scan stores the contents that it reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from weakfs.class_decorators import define
from weakfs.session import MissingBlob
from weakfs.session.blobs.blob import ContentSource, Stored, digest_of, digest_of_pieces


@define(eq=False)
class StatToken:
    """Proof that everything below a directory was stored in one place and is still stored there."""

    place: str
    # Set when everything is synced; until then only the writer itself may rely on the token.
    is_finished: bool = False


class Sink(Protocol):
    """Receives the contents and directories of a scan."""

    @property
    def token(self) -> StatToken | None:
        """The token attached to directories that are made with this sink."""
        ...

    @property
    def source(self) -> ContentSource:
        """The source from which added contents can be read."""
        ...

    def trusts(self, token: StatToken | None) -> bool:
        """Return whether contents below a directory with that token need not be added again."""
        ...

    def keeps(self, digest: bytes) -> bool:
        """Return whether a blob is stored, or need not be."""
        ...

    def add(self, content: bytes) -> Stored | bytes:
        """Add a blob, and return the content that represents it in a tree."""
        ...

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored | bytes:
        """Add a blob of `size` bytes that is too large for memory. If reading a piece fails, nothing is kept."""
        ...

    def add_manifest(self, manifest: bytes) -> bytes | None:
        """Add a directory's manifest and return its digest; `None` if manifests are not kept."""
        ...


class HashOnlySink:
    """A sink that stores nothing: the tree has all digests, but its contents cannot be read."""

    token = None

    @property
    def source(self) -> ContentSource:
        """The sink itself; see `read`."""
        return self

    def trusts(self, token: StatToken | None) -> bool:
        """Return true: no content needs to be stored."""
        return True

    def keeps(self, digest: bytes) -> bool:
        """Return true: no content needs to be stored."""
        return True

    def add(self, content: bytes) -> Stored | bytes:
        """Return the reference to a blob."""
        return Stored(digest_of(content), len(content), self)

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored | bytes:
        """Return the reference to a large blob."""
        return Stored(digest_of_pieces(size, pieces), size, self)

    def add_manifest(self, manifest: bytes) -> None:
        """Do nothing."""

    def read(self, digest: bytes) -> bytes:
        """Raise `MissingBlob`."""
        raise MissingBlob(
            f"the content {digest.hex()} was not kept: the directory was only scanned; take a snapshot to keep it",
            digest=digest,
        )


class InMemorySink(HashOnlySink):
    """A sink whose trees hold the contents themselves."""

    def trusts(self, token: StatToken | None) -> bool:
        """Return false: a reference is not enough."""
        return False

    def keeps(self, digest: bytes) -> bool:
        """Return false: a reference is not enough."""
        return False

    def add(self, content: bytes) -> Stored | bytes:
        """Return the content itself."""
        return content

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored | bytes:
        """Return a large blob as well, joined in memory."""
        return b"".join(pieces)
