"""The document of one checkpoint: what it consists of, and what the next one needs to know about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.session.blobs.blob import digest_of
from weakfs.session.blobs.rope import Content
from weakfs.session.durable.checkpoints.log_slices import EventRun, LogHead, event_runs, log_heads
from weakfs.session.durable.checkpoints.state_document import FORMAT, VERSION, MarkEntry, StateDocument, StatesEntry
from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frames.content_copies import compressed, copies_to_make
from weakfs.session.history.keyframes import GAP, Mark
from weakfs.session.history.reduction import Row
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.table import Table

# A keyframe is kept, for reading history, when the frames since the last one take up this many times its size.
MARK_FACTOR = 8


@frozen(eq=False)
class Moment:
    """What a checkpoint consists of: the session after one frame."""

    number: int
    session_id: str
    origin_id: str
    counter: int
    rules: Rules
    line: Timeline
    # The timeline, including the records that `line` has dropped.
    whole: Timeline
    # The bytes of frames since the last checkpoint.
    size: int
    counts: Mapping[str, int]
    # The numbers of events before the first frame that is kept.
    kept_from: Mapping[str, int]
    index: Any
    # Whether the checkpoint was requested explicitly.
    is_forced: bool = True


@define(eq=False)
class Written:
    """What is known about the newest checkpoint."""

    seq: int = 0
    size: int = 0
    runs: Mapping[str, EventRun] = field(factory=dict[str, EventRun])
    states: tuple[StatesEntry, ...] = ()
    marks: tuple[MarkEntry, ...] = ()
    # The bytes of frames since the newest of these marks.
    since_mark: int = 0
    # The slices of the newest mark, if it was just written.
    mark: Mark | None = None
    digests: Mapping[int, tuple[Content, str]] = field(factory=dict[int, "tuple[Content, str]"])
    # The keys of the copies to which the checkpoint refers, by digest, and their sizes by key.
    copies: Mapping[str, str] = field(factory=dict[str, str])
    copy_sizes: Mapping[str, int] = field(factory=dict[str, int])
    heads: Mapping[str, LogHead] = field(factory=dict[str, LogHead])


def written_checkpoint(
    moment: Moment, last: Written, there: StreamContents, writer: str, *, is_reset: bool = False
) -> tuple[bytes, Written, dict[str, Content]]:
    """Return a checkpoint's document, what is known about it, and the contents that it refers to.

    `last` is the newest checkpoint, and `there` are the contents of the stream. The keys of new copies contain
    `writer`. A reset uses no copies, since its document and contents are kept as long as its frame.
    """
    line, whole = moment.line, moment.whole
    rows = list(whole.rows.since(max(last.seq - whole.dropped, 0)))
    document = StateDocument(moment.rules, last.digests)
    runs = event_runs(moment.rules, line, moment.counts, moment.kept_from, last.runs, rows)
    contents: dict[str, Content] = {}
    heads, chunks = log_heads(line.logs, runs, last.heads, lambda logs: _logs_text(moment.rules, logs, there, contents))
    contents |= chunks
    body = document.written(line, runs, heads)
    states_of = document.blobs.by_digest
    copies: dict[str, str] = {}
    if not is_reset:
        copies = copies_to_make(there, states_of, last.copies, moment.number, writer)
    cost = last.size + sum(len(states_of[digest]) for digest in copies)
    mark, marks, since_mark = _marks(moment, last, document, runs, cost, contents)
    of_records, states = _states(moment, last, document, rows, contents)
    # What these documents refer to is kept.
    copies = {digest: key for digest, key in copies.items() if digest not in contents}
    document.blobs.name_copies(copies)
    copy_sizes = _add_contents(contents, states_of, copies, last.copy_sizes)
    text = document.text(
        {
            "format": FORMAT,
            "version": VERSION,
            "session_id": moment.session_id,
            "origin_id": moment.origin_id,
            "counter": moment.counter,
            **body,
            "index": moment.index,
            "states": [[entry.first, entry.last, entry.digest] for entry in states],
            "marks": [[entry.seq, entry.digest, entry.lengths] for entry in marks],
        }
    )
    for used in (document, of_records):
        contents |= there.missing_of(used.stored)
        used.close()
    written = Written(
        line.seq,
        len(text),
        runs,
        states,
        marks,
        since_mark,
        mark,
        document.blobs.digests,
        copies,
        copy_sizes,
        heads,
    )
    return text, written, contents


def _add_contents(
    contents: dict[str, Content],
    of_states: Mapping[str, Content],
    copies: Mapping[str, str],
    known_sizes: Mapping[str, int],
) -> dict[str, int]:
    """Add the contents of the states, or the copies that replace them, and return the sizes of the copies by key."""
    sizes: dict[str, int] = {}
    for digest, content in of_states.items():
        key = copies.get(digest)
        if key is None:
            contents[digest] = content
        elif key in known_sizes:
            sizes[key] = known_sizes[key]
        else:
            contents[key] = copy = compressed(content)
            sizes[key] = len(copy)
    return sizes


def _logs_text(rules: Rules, logs: Table, there: StreamContents, contents: dict[str, Content]) -> bytes:
    """Return a document of LOG slices, and add the contents that it refers to."""
    document = StateDocument(rules, {})
    text = document.logs_text(logs)
    contents |= document.blobs.by_digest
    contents |= there.missing_of(document.stored)
    document.close()
    return text


def _marks(
    moment: Moment,
    last: Written,
    document: StateDocument,
    runs: Mapping[str, EventRun],
    cost: int,
    contents: dict[str, Content],
) -> tuple[Mark | None, tuple[MarkEntry, ...], int]:
    """Return the slices of a new keyframe if one is due, all keyframes, and the bytes of frames since the newest.

    The document of a new keyframe, and what it refers to, are added to `contents`.
    """
    line = moment.line
    is_whole = moment.whole is line
    marks = last.marks if is_whole else ()
    since_mark = last.since_mark + moment.size
    if since_mark <= MARK_FACTOR * cost or line.seq - line.dropped <= GAP or not is_whole:
        return None, marks, since_mark
    past = StateDocument(moment.rules, document.blobs.digests)
    text, lengths = past.mark(line, {tag: run for tag, run in runs.items() if run.count})
    digest = digest_of(text).hex()
    contents |= past.blobs.by_digest
    contents[digest] = text
    return Mark(line.seq, line.state, line.logs, 0), (*marks, MarkEntry(line.seq, digest, lengths)), 0


def _states(
    moment: Moment, last: Written, document: StateDocument, rows: list[Row], contents: dict[str, Content]
) -> tuple[StateDocument, tuple[StatesEntry, ...]]:
    """Return the document of the states in new records, which is added to `contents`, and all such documents."""
    line, first = moment.line, moment.whole.seq - len(rows) + 1
    states = tuple(entry for entry in last.states if entry.last > min(moment.index["seqs"], default=0))
    of_records = StateDocument(moment.rules, document.blobs.digests)
    found = of_records.states_of(first, rows)
    if found:
        text = of_records.text({"states": found, "dropped": 0, "records": []})
        digest = digest_of(text).hex()
        states = (*states, StatesEntry(first, line.seq, digest))
        contents |= of_records.blobs.by_digest
        contents[digest] = text
    return of_records, states
