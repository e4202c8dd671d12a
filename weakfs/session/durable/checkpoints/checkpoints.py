"""Writing checkpoints in the background: the state is immutable, so a thread can write it while calls continue."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from threading import Thread
from typing import Any, cast
from uuid import uuid4

from attrs import field

from weakfs.class_decorators import define
from weakfs.errors import WeakfsError
from weakfs.session.blobs.rope import Content, joined
from weakfs.session.codec.blob_table import Json
from weakfs.session.durable.checkpoints.checkpoint_document import Moment, Written, written_checkpoint
from weakfs.session.durable.checkpoints.log_slices import StoredHead
from weakfs.session.durable.checkpoints.state_document import (
    FORMAT,
    VERSION,
    LoadedCheckpoint,
    MarkEntry,
    StatesEntry,
    StoredMark,
    StoredStates,
    document_of,
)
from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frames.content_copies import ContentFromFrames, copies_of
from weakfs.session.durable.frames.decoder import FrameDecoder
from weakfs.session.durable.frames.stream_history import StoredEvents, StoredRecords, StreamHistory
from weakfs.session.errors import MissingBlob, RecordsDropped, SessionFileError, UnsupportedVersion
from weakfs.session.files.fields import Fields
from weakfs.session.history.keyframes import Mark, PackedMark
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import Table
from weakfs.session.stored_state import SessionTrunk
from weakfs.storage.errors import StorageDamaged, StorageError
from weakfs.storage.event_store import Checkpoint, EventStore

# A checkpoint is due when the frames since the last one take up at least `LEAST` bytes, and `FACTOR` times its size.
LEAST = 4 << 20
FACTOR = 2
# An automatic checkpoint is postponed if its copies, with those of the checkpoint that it replaces, would make up more
# than 1 / `COPY_SHARE` of the bytes of frames and contents.
COPY_SHARE = 4
# Contents are stored in batches of about this many bytes.
BATCH = 8 << 20

logger = logging.getLogger("weakfs.session")


@define(eq=False)
class Checkpointing:
    """The checkpoints of one stream, and the history before them."""

    store: EventStore
    stream: str
    history: StreamHistory
    states: StoredStates
    last: Written = field(factory=Written)
    # The bytes of frames since the newest checkpoint, and how many there must be if one was postponed.
    pending: int = 0
    put_off_to: int = 0
    # Identifies this writer in the keys of copies.
    writer: str = field(factory=lambda: uuid4().hex[:12])
    _thread: Thread | None = None

    @classmethod
    def of(
        cls,
        store: EventStore,
        stream: str,
        rules: Rules,
        content_from_frames: ContentFromFrames,
        max_expansion: float | None,
    ) -> Checkpointing:
        """Return the checkpoints of a stream, without reading any."""
        decoder = FrameDecoder(rules, StreamContents(store, stream), content_from_frames, max_expansion)
        states = StoredStates(decoder)
        return cls(store, stream, StreamHistory(store, stream, decoder, states), states)

    def moment(
        self,
        session: SessionTrunk,
        number: int,
        line: Timeline,
        whole: Timeline | None = None,
        *,
        is_forced: bool = True,
    ) -> Moment:
        """Return what a checkpoint after a frame consists of. O(index).

        `whole` is the timeline before it was compacted.
        """
        copy = line.copy()
        return Moment(
            number,
            session.session_id,
            session.origin_id,
            session._counter,
            session._rules,
            copy,
            copy if whole is None else whole.copy(),
            self.pending,
            dict(self.history.counts),
            self.history.counts_before(line.dropped),
            self.history.written(line.dropped),
            is_forced,
        )

    @property
    def due(self) -> int:
        """The number of bytes of frames after which a checkpoint is due."""
        return max(LEAST, FACTOR * self.last.size, self.put_off_to)

    def begin(self, session: SessionTrunk, number: int, *, is_forced: bool = False) -> None:
        """Write a checkpoint of the trunk, the state after a frame, in the background."""
        if self._thread is None:
            moment = self.moment(session, number, session._trunk, is_forced=is_forced)
            self.pending = self.put_off_to = 0
            self._thread = Thread(
                target=self._write_in_background, args=(session, moment), name="weakfs-checkpoint", daemon=True
            )
            self._thread.start()

    def _write_in_background(self, session: SessionTrunk, moment: Moment) -> None:
        try:
            written = self.write(moment)
        except Exception as error:
            # The frames are stored, so nothing is lost: the next checkpoint makes up for this one.
            if not (isinstance(error, (RecordsDropped, MissingBlob)) and self._is_outdated(moment)):
                logger.exception("cannot write a checkpoint of session %r", moment.session_id)
        else:
            with session.lock:
                if written is not None:
                    self.settle(session, written)
                else:
                    self.pending += moment.size
        finally:
            self._thread = None

    def _is_outdated(self, moment: Moment) -> bool:
        """Return whether there is a newer state: another process that dropped history has stored one."""
        try:
            return self.store.head(self.stream) > moment.number
        except StorageError:
            return False

    def forget_thread(self) -> None:
        """Forget the thread of the process that this one was forked from."""
        self._thread = None

    def wait(self) -> None:
        """Wait for a checkpoint that is being written; must not be called under the session's lock."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def write(self, moment: Moment) -> Written | None:
        """Write a checkpoint and what it refers to, and delete the copies to which only the previous one referred.

        Return `None` if it was postponed because its copies would take too much space.
        """
        text, written, contents = written_checkpoint(moment, self.last, self.history.decoder.contents, self.writer)
        if self.store.head(self.stream) < moment.number:
            # The stream was deleted, and storing contents would create it again.
            raise StorageError(f"stream {self.stream!r} of {self.store.url} ends before frame {moment.number}")
        size = sum({**self.last.copy_sizes, **written.copy_sizes}.values())
        excess = COPY_SHARE * size - moment.index["bytes"]
        if excess > 0 and not moment.is_forced:
            self.put_off_to = moment.size + max(excess, LEAST)
            return None
        self.put(contents)
        self._put_checkpoint(Checkpoint(moment.number, text), set(written.copies.values()))
        return written

    def _put_checkpoint(self, checkpoint: Checkpoint, copies: set[str]) -> None:
        try:
            before = self.store.get_checkpoint(self.stream)
        except StorageDamaged:
            # The engine keeps the one with the higher number. The copies of a damaged one stay.
            before = None
        old = copies_of(document_of(before.data, "checkpoint").get("blobs", ())) if before is not None else set[str]()
        if before is not None and before.number > checkpoint.number:
            # Another writer was faster.
            unused = copies - old
        else:
            self.store.put_checkpoint(self.stream, checkpoint)
            unused = old - copies
        if unused:
            self.store.trim(self.stream, 0, contents=sorted(unused))

    def put(self, contents: Mapping[str, Content]) -> None:
        """Store the contents that the stream does not have yet."""
        there = self.store.has_contents(self.stream, list(contents))
        batch: dict[str, bytes] = {}
        size = 0
        for digest, content in contents.items():
            if digest in there:
                continue
            batch[digest] = joined(content)
            size += len(batch[digest])
            if size > BATCH:
                self.store.put_contents(self.stream, batch)
                batch, size = {}, 0
        if batch:
            self.store.put_contents(self.stream, batch)

    def settle(self, session: SessionTrunk, written: Written) -> None:
        """Make a written checkpoint the newest one, and drop the history that it refers to from memory."""
        self.last = written
        self.states.entries = list(written.states)
        self.history.until = written.seq
        self.history.decoder.rules = session._rules
        line = session._trunk
        if written.mark is not None:
            mark, written.mark = written.mark, None
            line.settle_history(mark, self._stored_marks(written.marks, line.logs))
        for stretch, end in line.rows._stretches():
            if isinstance(stretch.items, StoredRecords):
                break
            size = end - stretch.start
            if stretch.is_packed and len(stretch.items) == size and line.dropped + end <= written.seq:
                stretch.items = StoredRecords(self.history, line.dropped + stretch.start + 1, size)
        for tag, run in written.runs.items():
            values: Log[Any] = line.logs.get(tag, Log())
            for stretch, end in values._stretches():
                if isinstance(stretch.items, StoredEvents) or stretch.start < run.head:
                    break
                size = end - stretch.start
                if stretch.is_packed and len(stretch.items) == size and end <= run.head + run.count:
                    stretch.items = StoredEvents(self.history, tag, run.first + stretch.start - run.head, size)

    def replace(self, before: Timeline, moment: Moment, text: bytes, written: Written) -> None:
        """Make the document of a frame the newest checkpoint, and trim history that nothing needs any more.

        The frame is stored and has replaced the timeline `before`. Its document is enough to open the session, so
        errors of the storage and damage in it are only logged: a later checkpoint or compaction makes up for what they
        prevented.
        """
        from weakfs.session.durable.checkpoints.trim_stream import trim

        self.pending = 0
        last, self.last = self.last, written
        # The events that are about to be read may need the states in frames that are about to be deleted.
        self.states.entries = [*last.states, *(entry for entry in written.states if entry not in last.states)]
        self.history.until = written.seq
        try:
            self._put_checkpoint(Checkpoint(moment.number, text), set())
            if moment.line.dropped:
                for line in (before, moment.line):
                    self._hold_events(line, written)
                gone = [entry.digest for entry in last.states] + [entry.digest for entry in last.marks]
                gone += [digest for head in last.heads.values() for _, digest in head.chunks]
                trim(self.store, self.stream, self.history.first_frame(moment.line.dropped), text, gone)
            self.states.entries = list(written.states)
        except (StorageError, SessionFileError) as error:
            logger.warning(
                "the history of session %r was replaced, but its checkpoint or its old frames were not: %s; a later "
                "checkpoint or compaction will do that",
                moment.session_id,
                error,
            )

    def _hold_events(self, line: Timeline, written: Written) -> None:
        """Read into memory the LOG values whose frames or documents are about to be deleted."""
        for tag, run in written.runs.items():
            head = written.heads.get(tag)
            kept = {digest for _, digest in head.chunks} if head is not None else set[str]()
            for stretch, _ in line.logs.get(tag, Log())._stretches():
                items = stretch.items
                if isinstance(items, StoredEvents):
                    is_lost = stretch.start < run.head
                else:
                    is_lost = isinstance(items, StoredHead) and items.digest not in kept
                if is_lost:
                    stretch.items = stretch.read()

    def _stored_marks(self, entries: Iterable[MarkEntry], logs: Table) -> list[StoredMark]:
        return [StoredMark(entry, self.states, logs) for entry in entries]

    def load(self, text: bytes, where: str) -> tuple[Timeline, dict[str, Any], Rules]:
        """Read a checkpoint's document: return its timeline, the session's own fields and the rules.

        Raises `SessionFileError` for a document that is damaged.
        """
        document = document_of(text, where)
        try:
            return self._load(document, len(text), where)
        except WeakfsError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise SessionFileError(f"it is malformed ({type(error).__name__}: {error})", where=where) from error

    def _load(self, document: Json, size: int, where: str) -> tuple[Timeline, dict[str, Any], Rules]:
        if type(document) is not dict or document.get("format") != FORMAT:
            raise SessionFileError("this is not a checkpoint of a session", where=where)
        if document.get("version") != VERSION:
            raise UnsupportedVersion(
                f"the checkpoint has version {document.get('version')!r:.60} and this library reads {VERSION}; use a "
                f"newer release of weakfs",
                where=where,
            )
        fields = Fields(document, "$")
        fields.take("format", str)
        fields.take("version", int)
        header = fields.header()
        self.history.take_over(fields.take("index", dict))
        self.states.entries = [StatesEntry(*entry) for entry in fields.take("states", list)]
        marks = tuple(MarkEntry(*entry) for entry in fields.take("marks", list))
        loaded = LoadedCheckpoint(self.history.decoder, fields, size, self.history, self.states.logs_of)
        loaded.close()
        fields.done()
        line = loaded.line
        self.history.decoder.rules = loaded.rules
        self.history.until = line.seq
        self.last = Written(
            line.seq,
            size,
            loaded.runs,
            tuple(self.states.entries),
            marks,
            copies=loaded.copies,
            copy_sizes=loaded.copy_sizes,
            heads=loaded.heads,
        )
        past = [*self._stored_marks(marks, line.logs), Mark(line.seq, line.state, line.logs, 0)]
        # These keyframes have the interface of packed ones.
        line.forget_keyframes(cast("Log[PackedMark]", Log(past)))
        return line, header, loaded.rules
