"""Checkpoints in storage: the state of a session as one document, without its history.

It has the sections of a session file, apart from the records. Contents are referred to by digest and read when they are
needed. LOG values that are events, such as tool calls, are referred to by their place in the history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson
from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.session.blobs.blob import ContentSource, Stored, digest_of
from weakfs.session.blobs.rope import Content, Rope, joined
from weakfs.session.codec.blob_table import Blobs, Json, shown
from weakfs.session.durable.checkpoints.log_slices import MOST, EventRun, LogHead
from weakfs.session.durable.frames.content_copies import copied_digest
from weakfs.session.durable.frames.decoder import FrameDecoder
from weakfs.session.durable.frames.frame_blobs import INLINE
from weakfs.session.durable.frames.stream_history import StoredEvents, StoredRecords, StreamHistory, stretches
from weakfs.session.errors import SessionFileError
from weakfs.session.files.document_reader import LoadedDocument
from weakfs.session.files.document_writer import Document
from weakfs.session.files.fields import Fields, shape_of
from weakfs.session.files.spool import JsonObject
from weakfs.session.history.keyframes import Mark
from weakfs.session.history.loaded_past import Past
from weakfs.session.history.reduction import Row
from weakfs.session.history.snapshot_table import SnapshotTable
from weakfs.session.history.timeline import Timeline, ordered_snapshots
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.events import STATE_PLACES
from weakfs.session.slices.log import STRETCH, Log
from weakfs.session.slices.table import EMPTY_TABLE, Table

FORMAT = "weakfs-checkpoint"
VERSION = 1


class CheckpointBlobs(Blobs):
    """The blobs of a checkpoint: large ones are referred to by digest, which is computed once for each object."""

    def __init__(self, known: Mapping[int, tuple[Content, str]]) -> None:
        super().__init__()
        # The digests of large contents by identity, and the contents by digest.
        self.digests: dict[int, tuple[Content, str]] = {}
        self.by_digest: dict[str, Content] = {}
        self._rows_by_digest: dict[str, Json] = {}
        self._known = known
        self._small: dict[bytes, int] = {}

    def number(self, content: Content, parent: Content | None = None) -> int:
        """Return the number of a blob."""
        number = self._by_identity.get(id(content))
        if number is not None:
            return number
        if type(content) is Stored:
            return self._same(self._stored(content), content)
        if len(content) <= INLINE:
            data = joined(content)
            number = self._small.get(data)
            if number is None:
                number = self._small[data] = self._add(shown(data), content)
            return self._same(number, content)
        digest = self._digest(content)
        number = self._by_content.get(digest)
        if number is None:
            row = self._rows_by_digest[digest] = {"content": digest, "size": len(content)}
            number = self._by_content[digest] = self._add(row, content)
            self.by_digest[digest] = content
        return self._same(number, content)

    def name_copies(self, keys: Mapping[str, str]) -> None:
        """Refer to contents by the keys of the copies that only checkpoints use."""
        for digest, key in keys.items():
            row = self._rows_by_digest[digest]
            del row["content"]
            row["copy"] = key

    def _digest(self, content: Content) -> str:
        known = self._known.get(id(content))
        if known is None or known[0] is not content:
            digest = content.digest() if type(content) is Rope else digest_of(joined(content))
            known = (content, digest.hex())
        self.digests[id(content)] = known
        return known[1]

    def number_all(self, contents: Sequence[Content]) -> list[int]:
        """Return the numbers of many blobs."""
        return [self.number(content) for content in contents]

    def are_equal(self, one: Content, other: Content) -> bool:
        """Return whether two blobs are equal, without reading them."""
        return one is other or (len(one) == len(other) and self.number(one) == self.number(other))


class StateDocument(Document):
    """A document of states."""

    def __init__(self, rules: Rules, known: Mapping[int, tuple[Content, str]]) -> None:
        super().__init__(rules)
        self.blobs = self._writing.blobs = CheckpointBlobs(known)
        for pool, _ in [*self._writing.pools.values()]:
            self._writing.pools[pool.cls] = (pool, pool.writer(self.blobs))

    def sections(self) -> dict[str, Json]:
        """Return the sections that the tables refer to."""
        pools = {pool.section: writer.rows for pool, writer in self._writing.pools.values()}
        return {"slices": self._slices, **pools, "blobs": self.blobs.rows}

    def text(self, fields: dict[str, Json]) -> bytes:
        """Return the document as JSON."""
        return b"".join(JsonObject({**fields, "installed": self._all_installed(), **self.sections()}).pieces())

    def states_of(self, first: int, rows: Iterable[Row]) -> list[Json]:
        """Return the states in records, each with its record's number."""
        return [
            [seq, self.table(row[3][STATE_PLACES[row[2]]])]
            for seq, row in enumerate(rows, first)
            if row[2] in STATE_PLACES
        ]

    def mark(self, line: Timeline, runs: Mapping[str, EventRun]) -> tuple[bytes, dict[str, int]]:
        """Return the document of a keyframe, and the lengths of the LOG slices that are not in it."""
        lengths = {tag: len(line.logs[tag]) for tag in sorted(runs)}
        logs = self._logs({tag: values for tag, values in line.logs.items() if tag not in lengths}, {})
        states: Json = [[line.seq, self.table(line.state)]]
        return self.text({"states": states, "logs": logs, "dropped": 0, "records": []}), lengths

    def logs_text(self, logs: Table) -> bytes:
        """Return the document of LOG slices alone."""
        return self.text({"states": [], "logs": self.table(logs), "dropped": 0, "records": []})

    def written(self, line: Timeline, runs: Mapping[str, EventRun], heads: Mapping[str, LogHead]) -> dict[str, Json]:
        """Return the fields of a timeline."""
        base: Json = None
        if line.dropped:
            mark = line.base
            shared = {tag for tag, values in mark.logs.items() if tag in runs and line.logs[tag].extends(values)}
            base = {
                "state": self.table(mark.state),
                "logs": self._logs({tag: values for tag, values in mark.logs.items() if tag not in shared}, {}),
                "lengths": {tag: len(mark.logs[tag]) for tag in sorted(shared)},
                "block_end": mark.block_end,
            }
        return {
            "seq": line.seq,
            "dropped": line.dropped,
            "records": [],
            "base": base,
            "state": self.table(line.state),
            "logs": self._logs(line.logs, runs, heads),
            "heads": {tag: [[count, digest] for count, digest in head.chunks] for tag, head in sorted(heads.items())},
            "events": {tag: [run.head, run.first, run.count] for tag, run in sorted(runs.items())},
            "snapshots": [self._snapshot(entry) for entry in ordered_snapshots(line)],
            "externals": [[seq, self._writing.any(kept)] for seq, kept in sorted(line.externals.items())],
        }

    def _logs(
        self,
        logs: Mapping[str, Log[Any]],
        runs: Mapping[str, EventRun],
        heads: Mapping[str, LogHead] | None = None,
    ) -> Json:
        table = EMPTY_TABLE
        for tag, values in logs.items():
            own = values.prefix(runs[tag].head) if tag in runs else values
            if heads and tag in heads:
                own = own.without_first(len(heads[tag]))
            table = table.set(tag, own)
        return self.table(table)


class LoadedCheckpoint(LoadedDocument):
    """A checkpoint that was read."""

    def __init__(
        self, decoder: FrameDecoder, fields: Fields, size: int, history: StreamHistory, logs_of: Callable[[str], Table]
    ) -> None:
        self._decoder, self._history, self._logs_of = decoder, history, logs_of
        self.heads: dict[str, LogHead] = {}
        self.runs: dict[str, EventRun] = {}
        # The keys of the copies that only checkpoints use, by digest, and the maximum sizes of these copies, by key.
        self.copies: dict[str, str] = {}
        self.copy_sizes: dict[str, int] = {}
        super().__init__(decoder.rules, fields, decoder.contents, decoder.expansion(size))

    def _read_blobs(self, rows: Sequence[Json], source: ContentSource) -> list[Content]:
        self.copy_sizes = {row["copy"]: row["size"] for row in rows if type(row) is dict and "copy" in row}
        self.copies = {copied_digest(key): key for key in self.copy_sizes}
        return self._decoder.unread_blobs(rows)

    def _line(self, fields: Fields) -> Timeline:
        seq, dropped = fields.take("seq", int), self._dropped
        if not 0 <= dropped <= seq:
            raise SessionFileError(f"records {dropped} to {seq} cannot be dropped", where="$.dropped")
        logs = self._table(fields.take("logs", list), "log", "$.logs")
        logs = self._with_events(logs, fields.take("events", dict), fields.take("heads", dict))
        base = Mark(0, EMPTY_TABLE, EMPTY_TABLE, 0)
        written = fields.take("base", dict, type(None))
        if written is not None:
            own = Fields(written, "$.base")
            base_logs = self._table(own.take("logs", list), "log", "$.base.logs")
            for tag, length in own.take("lengths", dict).items():
                base_logs = base_logs.set(tag, logs[tag].prefix(length))
            state = self._table(own.take("state", list), "state", "$.base.state")
            base = Mark(dropped, state, base_logs, own.take("block_end", int))
            own.done()
        entries = [
            self._snapshot(row, f"$.snapshots[{number}]", seq)
            for number, row in enumerate(fields.take("snapshots", list))
        ]
        records = [
            StoredRecords(self._history, first, count)
            for first, count in stretches(dropped + 1, seq - dropped, STRETCH)
        ]
        line = Timeline(
            state=self._table(fields.take("state", list), "state", "$.state"),
            logs=logs,
            rows=Log._of_stretches(records),
            base=base,
            snapshots=SnapshotTable.of(entries),
            past=Past(loaded=seq, slices=frozenset(self.rules.specs)),
            touched=Log(),
        )
        for at, kept in fields.take("externals", list):
            line.externals = line.externals.set(at, self._externals(kept, "$.externals"))
        return line

    def _with_events(self, logs: Table, runs: dict[str, Json], heads: dict[str, Json]) -> Table:
        """Add the values in heads, and those that are events of the history."""
        for tag, (head, first, count) in runs.items():
            shape = shape_of(self.rules.registry, tag, "$.events")
            values = logs.get(shape.tag, Log[Any]())
            events = [
                StoredEvents(self._history, shape.tag, start, size) for start, size in stretches(first, count, STRETCH)
            ]
            chunks = tuple((count, digest) for count, digest in heads.get(shape.tag, ()))
            if any(not 0 < count <= MOST for count, _ in chunks):
                raise SessionFileError(f"a document of a head holds 1 to {MOST} values", where="$.heads")
            stored = LogHead(chunks, Log()).stretches(self._logs_of, shape.tag)
            whole: Log[Any] = Log._of_stretches([*stored, *stretch_items(values), *events])
            if chunks:
                self.heads[shape.tag] = LogHead(chunks, whole.prefix(sum(count for count, _ in chunks)))
            logs = logs.set(tag, whole)
            self.runs[tag] = EventRun(head, first, count, whole)
        return logs


def stretch_items(values: Log[Any]) -> list[Any]:
    """Return the items of a short log as stretches."""
    items = list(values)
    return [items[start : start + STRETCH] for start in range(0, len(items), STRETCH)]


class LoadedStates(LoadedDocument):
    """The states in the records of one interval between checkpoints."""

    def __init__(self, decoder: FrameDecoder, fields: Fields, size: int) -> None:
        self._decoder = decoder
        self.states: dict[int, Table] = {}
        self.logs: Table = EMPTY_TABLE
        super().__init__(decoder.rules, fields, decoder.contents, decoder.expansion(size))

    def _read_blobs(self, rows: Sequence[Json], source: ContentSource) -> list[Content]:
        return self._decoder.unread_blobs(rows)

    def _line(self, fields: Fields) -> Timeline:
        for seq, state in fields.take("states", list):
            self.states[seq] = self._table(state, "state", "$.states")
        self.logs = self._table(fields.take("logs", list, default=[]), "log", "$.logs")
        return Timeline()


@frozen
class StatesEntry:
    """Where the states in the records from `first` to `last` are stored."""

    first: int
    last: int
    digest: str


@define(eq=False)
class StoredStates:
    """The states in old records, read on demand."""

    decoder: FrameDecoder
    entries: list[StatesEntry] = field(factory=list[StatesEntry])
    _recent: dict[str, LoadedStates] = field(factory=dict[str, LoadedStates])

    def __call__(self, seq: int) -> Table:
        """Return the state in a record."""
        for entry in reversed(self.entries):
            if entry.first <= seq <= entry.last:
                return self.document(entry.digest).states[seq]
        raise SessionFileError(f"the state in record {seq} is missing from storage", where=f"record {seq}")

    def logs_of(self, digest: str) -> Table:
        """Return the LOG slices in a document."""
        return self.document(digest).logs

    def document(self, digest: str) -> LoadedStates:
        """Return a document of states; the most recently read ones are cached."""
        found = self._recent.get(digest)
        if found is None:
            text = self.decoder.contents.read(bytes.fromhex(digest))
            fields = Fields(document_of(text, f"content {digest}"), f"content {digest}")
            found = LoadedStates(self.decoder, fields, len(text))
            # A single assignment, because other threads read at the same time.
            self._recent = {**dict(list(self._recent.items())[-1:]), digest: found}
        return found


@frozen
class MarkEntry:
    """Where a keyframe is stored: the slices after record `seq`.

    `lengths` holds the lengths of LOG slices that have only grown since.
    """

    seq: int
    digest: str
    lengths: Mapping[str, int]


@frozen(eq=False)
class StoredMark:
    """A keyframe that is read when the history around it is needed."""

    entry: MarkEntry
    states: StoredStates
    # The LOG slices of a later moment.
    later: Table
    # 0, because a stored keyframe never lies among the records of a merged fork.
    block_end: int = 0

    @property
    def seq(self) -> int:
        """The number of the record that the keyframe follows."""
        return self.entry.seq

    @property
    def state(self) -> Table:
        """The STATE slices."""
        return self.states.document(self.entry.digest).states[self.entry.seq]

    @property
    def logs(self) -> Table:
        """The LOG slices."""
        logs = self.states.document(self.entry.digest).logs
        for tag, length in self.entry.lengths.items():
            logs = logs.set(tag, self.later[tag].prefix(length))
        return logs


def document_of(text: bytes, where: str) -> Json:
    """Parse a document."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise SessionFileError(f"this is not JSON: {error}", where=where) from None
