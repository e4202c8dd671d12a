"""The blobs of one frame: small ones are in the frame itself, large ones are stored once by digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weakfs.session.blobs.blob import Stored, digest_of
from weakfs.session.blobs.rope import Content, joined
from weakfs.session.codec.blob_table import Blobs, Json, shown

# Contents up to this size are in the frame itself.
INLINE = 512


class FrameBlobs(Blobs):
    """The blobs of one frame. Large ones are written as their digest, and collected in `contents_by_digest`."""

    def __init__(self, known: KnownDigests) -> None:
        # No other attributes: one of these is created for each frame.
        self.rows = []
        self.contents = []
        self.stored = {}
        self._by_identity = {}
        self.by_digest: dict[str, bytes] = {}
        self._known = known

    def number(self, content: Content, parent: Content | None = None) -> int:
        """Return the number of a blob."""
        number = self._by_identity.get(id(content))
        if number is not None:
            return number
        number = len(self.rows)
        if type(content) is Stored:
            self.rows.append({"stored": content.digest.hex(), "size": content.size})
            self.stored.setdefault(content.digest, {})[id(content.source)] = content
        else:
            data = joined(content)
            if len(data) <= INLINE:
                self.rows.append(shown(data))
            else:
                digest = self._known.digest(data)
                self.by_digest[digest] = data
                self.rows.append({"content": digest, "size": len(data)})
        # Keeping the content alive also keeps its id from being reused.
        self.contents.append(content)
        self._by_identity[id(content)] = number
        return number

    def number_all(self, contents: Sequence[Content]) -> list[int]:
        """Return the numbers of many blobs."""
        return [self.number(content) for content in contents]

    def plain(self, value: Any) -> Json:
        """Return a value of a plain event as JSON: a small blob as itself, any other by its digest."""
        kind = type(value)
        if kind is tuple:
            return [item if type(item) is int else self.plain(item) for item in value]
        if kind is bytes:
            if len(value) <= INLINE:
                return inline(value)
            digest = self._known.digest(value)
            if digest not in self.by_digest:
                self.by_digest[digest] = value
                self.rows.append({"content": digest, "size": len(value)})
                self.contents.append(value)
            return {"content": digest}
        if kind is Stored:
            return {"stored": self.rows[self.number(value)]["stored"]}
        return value

    def are_equal(self, one: Content, other: Content) -> bool:
        """Return whether two blobs are the same object. Treating any others as different is always correct."""
        return one is other


def inline(data: bytes) -> Json:
    """Return a small blob in a plain event as JSON."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return shown(data)


class KnownDigests:
    """The digests of the contents written most recently, so that each is hashed only once."""

    COUNT = 64
    # Hashing smaller contents again takes no longer than looking them up.
    LEAST = 1 << 13
    LARGEST = 1 << 20

    def __init__(self) -> None:
        self._known: dict[int, tuple[bytes, str]] = {}

    def digest(self, content: bytes) -> str:
        """Return the digest of a blob in hexadecimal."""
        if len(content) < self.LEAST:
            return digest_of(content).hex()
        known = self._known.get(id(content))
        if known is not None and known[0] is content:
            return known[1]
        digest = digest_of(content).hex()
        if len(content) <= self.LARGEST:
            if len(self._known) >= self.COUNT:
                del self._known[next(iter(self._known))]
            self._known[id(content)] = (content, digest)
        return digest
