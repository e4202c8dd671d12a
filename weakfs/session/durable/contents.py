"""The contents of a stream as a source of blobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weakfs.class_decorators import frozen
from weakfs.session.blobs.blob import Stored, checked
from weakfs.session.errors import MissingBlob
from weakfs.storage.event_store import EventStore


@frozen
class StreamContents:
    """Reads blobs from the contents of one stream, by digest."""

    store: EventStore
    stream: str

    def read(self, digest: bytes) -> bytes:
        """Return a blob. Raises `MissingBlob` if the stream does not have it, or it has changed."""
        return self.read_many([digest.hex()])[digest.hex()]

    def has(self, digest: bytes) -> bool:
        """Return whether the stream has a blob."""
        return bool(self.store.has_contents(self.stream, [digest.hex()]))

    def read_many(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return blobs by hexadecimal digest. Raises what `read` raises."""
        wanted = sorted(set(digests))
        found = self.store.get_contents(self.stream, wanted)
        where = f"stream {self.stream!r} of {self.store.url}"
        for digest in wanted:
            if digest not in found:
                raise MissingBlob(
                    f"the content {digest} is missing from storage; call session.refresh() and try again if another "
                    f"process has compacted the session, else put it back from a copy",
                    where=where,
                    digest=bytes.fromhex(digest),
                )
            checked(bytes.fromhex(digest), found[digest], where)
        return found

    def missing_of(self, found: Mapping[bytes, Iterable[Stored]], *, including_known: bool = False) -> dict[str, bytes]:
        """Read the blobs stored elsewhere that the stream does not have. Lost ones are omitted.

        With `including_known`, also read those that it has, for an append: others may delete them in the meantime.
        """
        elsewhere: dict[str, Stored] = {}
        for digest, candidates in found.items():
            first = list(candidates)
            if not any(isinstance(one.source, StreamContents) and one.source == self for one in first):
                elsewhere[digest.hex()] = first[0]
        if not elsewhere:
            return {}
        there = set[str]() if including_known else self.store.has_contents(self.stream, list(elsewhere))
        read: dict[str, bytes] = {}
        for name, content in elsewhere.items():
            if name not in there:
                try:
                    read[name] = content.join()
                except MissingBlob:
                    # The content was already lost; only what needs it fails.
                    continue
        return read
