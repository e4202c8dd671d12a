"""Copies of contents that only checkpoints use: the full contents of files that frames describe by their edits.

Each has its own key, to which no frame refers, so that a checkpoint can delete the copies of the one that it replaces
while other writers append. A session that still refers to a deleted copy gets the content from the frames again.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Mapping

from weakfs.class_decorators import frozen
from weakfs.session.blobs.blob import checked
from weakfs.session.blobs.rope import Content, joined
from weakfs.session.codec.blob_table import Json
from weakfs.session.durable.contents import StreamContents
from weakfs.session.errors import MissingBlob
from weakfs.session.slices.type_registry import Registry

# Returns the content that a key names, computed from the frames of a stream; `None` if that is no longer possible.
ContentFromFrames = Callable[[StreamContents, Registry, str], "bytes | None"]

# The key of a copy: the digest, the number of a frame after which the content existed, the name of the writer, and `c`
# if the copy is compressed. This version compresses all copies.
COPY = re.compile("[0-9a-f]{64}[0-9a-f]{16}[0-9a-f]{12}c?")

# The length of the key of a copy that is not compressed.
UNCOMPRESSED = 64 + 16 + 12


def copy_key(digest: str, number: int, writer: str) -> str:
    """Return the key of a copy that the checkpoint after a frame makes."""
    return f"{digest}{number:016x}{writer}c"


def compressed(content: Content) -> bytes:
    """Return a blob in the compressed form in which copies are stored."""
    return zlib.compress(joined(content), 1)


def copied_after(key: str) -> int:
    """Return the number of a frame after which the content that a key names existed."""
    return int(key[64:80], 16)


def copied_digest(key: str) -> str:
    """Return the digest of the content that a key names."""
    return key[:64]


def copies_of(rows: Iterable[Json]) -> set[str]:
    """Return the keys of the copies that the blobs of a checkpoint refer to."""
    return {row["copy"] for row in rows if type(row) is dict and "copy" in row}


@frozen
class Copies:
    """The source of one blob that a checkpoint copied."""

    contents: StreamContents
    key: str
    size: int
    registry: Registry
    content_from_frames: ContentFromFrames

    def read(self, digest: bytes) -> bytes:
        """Return the content. Raises `MissingBlob` if neither a copy nor the frames contain it any more."""
        store, stream = self.contents.store, self.contents.stream
        name = digest.hex()
        found = store.get_contents(stream, [self.key, name])
        data = found.get(name)
        if self.key in found:
            data = self._expanded(found[self.key])
        if data is None:
            data = self.content_from_frames(self.contents, self.registry, self.key)
        where = f"stream {stream!r} of {store.url}"
        if data is None:
            raise MissingBlob(
                f"the content {name} is missing from the storage: another process compacted the session; open it again",
                where=where,
                digest=digest,
            )
        return checked(digest, data, where)

    def _expanded(self, copy: bytes) -> bytes:
        if len(self.key) == UNCOMPRESSED:
            return copy
        try:
            # A damaged copy may claim any size, so the output is limited to the size that is expected.
            return zlib.decompressobj().decompress(copy, self.size + 1)
        except zlib.error:
            return b""  # whose digest is never the expected one


def copies_to_make(
    contents: StreamContents, digests: Iterable[str], known: Mapping[str, str], number: int, writer: str
) -> dict[str, str]:
    """Return the keys of the copies that a checkpoint needs, by digest: the contents that no frame has stored."""
    wanted = list(digests)
    there = contents.store.has_contents(contents.stream, wanted)
    return {digest: known.get(digest) or copy_key(digest, number, writer) for digest in wanted if digest not in there}
