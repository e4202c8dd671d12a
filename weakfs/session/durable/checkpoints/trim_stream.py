"""Trimming a stream after a compaction: frames of dropped records, and contents that nothing refers to any more."""

from __future__ import annotations

from collections.abc import Iterable

from weakfs.session.blobs.blob import checked
from weakfs.session.codec.blob_table import Json
from weakfs.session.durable.checkpoints.state_document import document_of
from weakfs.session.durable.frames.decoder import parsed
from weakfs.storage.errors import StreamConflict
from weakfs.storage.event_store import EventStore


def trim(store: EventStore, stream: str, first: int, checkpoint: bytes, documents: Iterable[str]) -> None:
    """Delete the frames before `first`, and the contents that only they and `documents` refer to.

    `documents` are the digests of the documents that an older checkpoint refers to. O(records).
    """
    kept = _references(store, stream, document_of(checkpoint, "checkpoint"))
    gone = _documents(store, stream, documents)
    last = 0
    while True:
        for number, data in store.read(stream, after=last):
            frame, last = parsed(number, data), number
            target = gone if number < first else kept
            target |= digests_of(frame.get("blobs", ()))
            if "reset" in frame:
                target |= _documents(store, stream, [frame["reset"]])
        try:
            return store.trim(stream, first, contents=sorted(gone - kept), expected=last)
        except StreamConflict as conflict:
            # Others appended in the meantime, and their frames may refer to these contents.
            if conflict.actual <= last:
                raise


def _documents(store: EventStore, stream: str, digests: Iterable[str]) -> set[str]:
    """Return the digests of documents and of everything that they refer to."""
    found = set[str]()
    for digest, text in store.get_contents(stream, digests).items():
        # A damaged document may refer to other contents, and those that it no longer names would be deleted.
        checked(bytes.fromhex(digest), text, f"stream {stream!r} of {store.url}")
        found.add(digest)
        found |= _references(store, stream, document_of(text, f"content {digest}"))
    return found


def _references(store: EventStore, stream: str, document: Json) -> set[str]:
    """Return the digests of everything that a document refers to: blobs, and other documents with theirs."""
    named = [digest for _, _, digest in document["states"]] if "format" in document else []
    named += [digest for _, digest, _ in document.get("marks", ())]
    named += [digest for chunks in document.get("heads", {}).values() for _, digest in chunks]
    return digests_of(document["blobs"]) | _documents(store, stream, named)


def digests_of(rows: Iterable[Json]) -> set[str]:
    """Return the digests of the contents that blobs refer to."""
    found: set[str] = set()
    for row in rows:
        if type(row) is dict:
            digest = row.get("content") or row.get("stored")
            if type(digest) is str:
                found.add(digest)
    return found
