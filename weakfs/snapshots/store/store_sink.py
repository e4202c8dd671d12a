"""Sinks on top of a writer: the base of all, and the one for scans without a snapshot."""

from __future__ import annotations

from collections.abc import Container, Iterable

from weakfs.session.blobs.blob import ContentSource, Stored, digest_of
from weakfs.snapshots.scan.sinks import StatToken
from weakfs.snapshots.store.snapshot_writer import StoreWriter


class WriterSink:
    """A sink whose directories go into the store through a writer; subclasses say where contents go."""

    def __init__(self, writer: StoreWriter) -> None:
        self._writer = writer

    @property
    def token(self) -> StatToken:
        """The token of directories whose contents are all where this sink puts them."""
        return self._writer.token

    @property
    def source(self) -> ContentSource:
        """The store, which also reads from its repository."""
        return self._writer.source

    def trusts(self, token: StatToken | None) -> bool:
        """Return whether contents below a directory with that token need not be added again."""
        return self._writer.trusts(token)

    def add_manifest(self, manifest: bytes) -> bytes:
        """Add a directory's manifest unless the store has it."""
        return self._writer.add_manifest(manifest)


class StoreSink(WriterSink):
    """A sink for scans that do not become snapshots. `Store.sink` creates it, for one thread."""

    def __init__(self, writer: StoreWriter, known: Container[bytes], places: Container[str]) -> None:
        """`known` are contents elsewhere in the store; `places` identify places whose contents are all in the store."""
        super().__init__(writer)
        self._known = known
        self._places = places

    def trusts(self, token: StatToken | None) -> bool:
        """Return whether everything below a directory with that token is in the store."""
        return super().trusts(token) or (token is not None and token.is_finished and token.place in self._places)

    def keeps(self, digest: bytes) -> bool:
        """Return whether a blob is in the store."""
        return digest in self._known or self._writer.keeps(digest)

    def add(self, content: bytes) -> Stored:
        """Add a blob unless the store has it."""
        digest = digest_of(content)
        return Stored(digest, len(content), self.source) if digest in self._known else self._writer.add(content)

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored:
        """Add a blob of `size` bytes that comes in pieces."""
        return self._writer.add_pieces(size, pieces)

    def finish(self) -> None:
        """Sync the added contents, which stay until the store is compacted."""
        self._writer.finish()
