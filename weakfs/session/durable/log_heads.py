"""The heads of LOG slices: values whose records were dropped, stored once for all checkpoints.

A compaction without `keep_calls` drops records and keeps calls. They go into documents of their own, oldest first, to
which every later checkpoint refers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from weakfs.session.blobs.blob import digest_of
from weakfs.session.durable.event_runs import EventRun, continues
from weakfs.session.durable.history import stretches
from weakfs.session.history.log import STRETCH, Log
from weakfs.session.slices.table import EMPTY_TABLE, Table

# The number of values in such a document. Fewer values stay in the checkpoint itself.
LEAST, MOST = 64, 4096


@frozen(eq=False)
class LogHead:
    """Where the first values of a slice are stored: the number of values in each document, and its digest."""

    chunks: tuple[tuple[int, str], ...]
    # The log that begins with them.
    values: Log[Any]

    def __len__(self) -> int:
        return sum(count for count, _ in self.chunks)

    def stretches(self, logs_of: Callable[[str], Table], tag: str) -> list[StoredHead]:
        """Return the values as stretches that are read when they are needed."""
        return [
            StoredHead(logs_of, digest, tag, first, size)
            for count, digest in self.chunks
            for first, size in stretches(0, count, STRETCH)
        ]


@frozen(eq=False)
class StoredHead:
    """A stretch of values in the document of a head."""

    logs_of: Callable[[str], Table]
    digest: str
    tag: str
    first: int
    count: int

    def __len__(self) -> int:
        return self.count

    def load(self) -> list[Any]:
        """Read the values."""
        return list(self.logs_of(self.digest)[self.tag].prefix(self.first + self.count).since(self.first))


def log_heads(
    logs: Table,
    runs: Mapping[str, EventRun],
    before: Mapping[str, LogHead],
    text_of: Callable[[Table], bytes],
) -> tuple[dict[str, LogHead], dict[str, bytes]]:
    """Return the heads of slices, and the new documents by digest. `before` are the heads of the last checkpoint.

    `text_of` writes a document of LOG slices.
    """
    heads: dict[str, LogHead] = {}
    documents: dict[str, bytes] = {}
    for tag, run in runs.items():
        values: Log[Any] = logs[tag]
        old = before.get(tag)
        is_kept = old is not None and len(old) <= run.head and continues(values, old.values)
        chunks = list(old.chunks) if old is not None and is_kept else []
        start = sum(count for count, _ in chunks)
        while run.head - start >= LEAST:
            size = min(run.head - start, MOST)
            part: Log[Any] = Log(values.prefix(start + size).since(start))
            text = text_of(EMPTY_TABLE.set(tag, part))
            digest = digest_of(text).hex()
            documents[digest] = text
            chunks.append((size, digest))
            start += size
        if chunks:
            heads[tag] = LogHead(tuple(chunks), values.prefix(start))
    return heads, documents
