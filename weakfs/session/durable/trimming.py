"""Trimming a stream after a compaction: frames of dropped records, and contents that nothing refers to any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weakfs.session.codec.shared_values import Json
from weakfs.session.durable.checkpoint import StatesEntry, document_of
from weakfs.session.durable.frame_decoder import parsed
from weakfs.session.durable.history import StreamHistory
from weakfs.storage.event_store import EventStore


def trim(
    store: EventStore, stream: str, history: StreamHistory, dropped: int, document: bytes, states: Sequence[StatesEntry]
) -> None:
    """Delete the frames that hold only records up to `dropped`, and the contents that only they refer to.

    `document` is the newest checkpoint, `states` what it names. O(records).
    """
    first = history.first_frame(dropped)
    gone: set[str] = set()
    kept = digests_of(document_of(document, "checkpoint")["blobs"])
    for entry in states:
        kept.add(entry.digest)
        text = store.get_contents(stream, [entry.digest])[entry.digest]
        kept |= digests_of(document_of(text, f"content {entry.digest}")["blobs"])
    for number, data in store.read(stream):
        frame = parsed(number, data)
        target = gone if number < first else kept
        target |= digests_of(frame.get("blobs", ()))
        if "reset" in frame:
            target.add(frame["reset"])
    store.trim(stream, first, contents=sorted(gone - kept))


def digests_of(rows: Iterable[Json]) -> set[str]:
    """Return the digests of the contents that blobs refer to."""
    found: set[str] = set()
    for row in rows:
        if type(row) is dict:
            digest = row.get("content") or row.get("stored")
            if type(digest) is str:
                found.add(digest)
    return found
