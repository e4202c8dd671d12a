"""LOG slices in checkpoints: values that are events of the history, and heads, which hold values that no longer are.

Events, such as tool calls, are referred to by their place in the history. A compaction without `keep_calls` drops
records and keeps calls: these values go into their own documents, oldest first, to which every later checkpoint refers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weakfs.class_decorators import frozen
from weakfs.session.blobs.blob import digest_of
from weakfs.session.durable.frames.stream_history import stretches
from weakfs.session.history.packed_rows import are_same
from weakfs.session.history.reduction import Row
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import STRETCH, Log
from weakfs.session.slices.table import EMPTY_TABLE, Table

# The number of values in such a document. Fewer values stay in the checkpoint itself.
LEAST, MOST = 64, 4096


@frozen(eq=False)
class EventRun:
    """How a checkpoint refers to the values of a LOG slice: `head` values, then `count` events of the history.

    `first` events of the same type precede these in the history.
    """

    head: int
    first: int
    count: int
    values: Log[Any]


def event_runs(
    rules: Rules,
    line: Timeline,
    counts: Mapping[str, int],
    kept_from: Mapping[str, int],
    before: Mapping[str, EventRun],
    rows: Iterable[Row],
) -> dict[str, EventRun]:
    """Return the runs of events in LOG slices. `rows` are the records since `before` was computed.

    `counts` are the numbers of events so far, `kept_from` those before the first frame that is kept. A slice that holds
    anything other than its own events starts a new run.
    """
    tags = {spec.tag for spec in rules.specs.values() if spec.kind == "log" and rules.registry.by_tag.get(spec.tag)}
    fields: dict[str, list[tuple[Any, ...]]] = {tag: [] for tag in tags}
    for row in rows:
        if row[2] in fields:
            fields[row[2]].append(row[3])
    runs: dict[str, EventRun] = {}
    for tag in tags:
        values = line.logs.get(tag)
        if values is None:
            continue
        total = counts.get(tag, 0)
        shape = rules.registry.by_tag[tag]
        new = fields[tag]
        old = before.get(tag) or EventRun(max(len(values) - len(new), 0), total - len(new), 0, Log())
        length = old.head + old.count
        is_run = (
            len(values) == length + len(new)
            and total == old.first + old.count + len(new)
            and continues(values, old.values)
            and all(
                type(value) is shape.cls and are_same(shape.pack(value), own)
                for value, own in zip(values.since(length), new, strict=True)
            )
        )
        run = EventRun(old.head, old.first, old.count + len(new), values)
        if not is_run:
            run = EventRun(len(values), total, 0, values)
        # The frames of dropped records are deleted, so their events are written out.
        lost = min(max(kept_from.get(tag, 0) - run.first, 0), run.count)
        runs[tag] = EventRun(run.head + lost, run.first + lost, run.count - lost, values)
    return runs


def continues(values: Log[Any], before: Log[Any]) -> bool:
    """Return whether a log begins with the items of another, by comparing the stretches that they share. O(log n)."""
    length = len(before)
    if not length:
        return True
    if length > len(values):
        return False
    mine, theirs = values._stretch.at(length - 1), before._stretch
    if mine is theirs:
        return True
    if mine.start != theirs.start or mine.base is not theirs.base:
        return False
    count = length - mine.start
    return all(one is other for one, other in zip(mine.read()[:count], theirs.read()[:count], strict=True))


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
