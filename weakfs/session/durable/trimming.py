"""Trimming a stream after a compaction: frames of dropped records, and contents that nothing refers to any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weakfs.session.codec.shared_values import Json
from weakfs.session.durable.checkpoint import document_of
from weakfs.session.durable.frame_decoder import parsed
from weakfs.storage.event_store import EventStore


def trim(
    store: EventStore, stream: str, first: int, document: bytes, documents: Sequence[str], gone_documents: Sequence[str]
) -> None:
    """Delete the frames before `first`, and the contents that only they and `gone_documents` refer to.

    `document` is the newest checkpoint, `documents` are the digests of those that it names. O(records).
    """
    kept = digests_of(document_of(document, "checkpoint")["blobs"]) | _with_blobs(store, stream, documents)
    gone = _with_blobs(store, stream, gone_documents)
    for number, data in store.read(stream):
        frame = parsed(number, data)
        target = gone if number < first else kept
        target |= digests_of(frame.get("blobs", ()))
        if "reset" in frame:
            target |= _with_blobs(store, stream, [frame["reset"]])
    store.trim(stream, first, contents=sorted(gone - kept))


def _with_blobs(store: EventStore, stream: str, documents: Iterable[str]) -> set[str]:
    """Return the digests of documents and of the contents that they refer to."""
    found = set[str]()
    for digest, text in store.get_contents(stream, documents).items():
        found.add(digest)
        found |= digests_of(document_of(text, f"content {digest}")["blobs"])
    return found


def digests_of(rows: Iterable[Json]) -> set[str]:
    """Return the digests of the contents that blobs refer to."""
    found: set[str] = set()
    for row in rows:
        if type(row) is dict:
            digest = row.get("content") or row.get("stored")
            if type(digest) is str:
                found.add(digest)
    return found
