"""The commit log of a durable session: every change is one frame of a stream, appended before it takes effect."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from attrs import Factory, field

from weakfs.class_decorators import define
from weakfs.session.blobs.blob import digest_of
from weakfs.session.durable.checkpoints.checkpoints import LEAST, Checkpointing
from weakfs.session.durable.checkpoints.reset import PART, start_anew
from weakfs.session.durable.commits.operations import Append, PutContents, Read, TakeLease
from weakfs.session.durable.commits.outcome import lasting_url, was_stored
from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frames.decoder import Frame, FrameDecoder, name_of
from weakfs.session.durable.frames.reader import FrameReader, undeclared_slices
from weakfs.session.durable.frames.refresh import StoredChange, refreshed, retract, settled, take, undo_failed
from weakfs.session.durable.frames.writer import NO_EXTERNALS, Change, FrameWriter
from weakfs.session.durable.lease import COMPACTION, HeldLease, compaction_seconds, patiently
from weakfs.session.errors import SessionConflict, SessionError
from weakfs.session.external import CommitPlace, Journal, prepare_all
from weakfs.session.history.timeline import Point, Timeline
from weakfs.session.replay.reduction import Row
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.slice import SliceSpec
from weakfs.session.slices.table import Table
from weakfs.session.transactions.steps import Steps, run, supplied
from weakfs.storage.errors import OutcomeUnknown, StorageDamaged, StorageError, StreamConflict
from weakfs.storage.event_store import Appender, DirectEventStore, EventStore

if TYPE_CHECKING:
    from weakfs.session.core import SessionCore
    from weakfs.session.durable.commits.commit_queue import CommitQueue
    from weakfs.session.durable.commits.pending_steps import PendingSteps

# How many times to try to append a frame if the outcome is unknown each time.
ATTEMPTS = 3

NO_JOURNALS: Mapping[str, Journal] = {}
NO_CONTENTS: Mapping[str, bytes] = {}


@define(eq=False)
class CommitLog:
    """Writes the changes of one session to its stream. Methods are called under the session's lock, except `close`."""

    store: EventStore
    stream: str
    checkpoints: Checkpointing
    # The number of the newest frame that the session has read or written.
    head: int
    # The slices that a reader knows about.
    known_slices: frozenset[str]
    # Whether changes are merged with what others stored first.
    merges: bool = False
    lease: HeldLease | None = None
    # Whether closing the session closes the storage.
    owns_store: bool = False
    # The newest frame that is known to be as durable as the storage can make it, or existed when the session was
    # opened.
    flushed: int = 0
    is_closed: bool = False
    # The trunk before it was brought up to date with what others stored, and a copy of it.
    base: tuple[Point, Timeline] | None = None
    # The stored part of the snapshots of attached filesystems from before rollbacks.
    externals: Mapping[int, Any] = NO_EXTERNALS
    # The session's own fields in the document that was read last.
    header: dict[str, Any] = field(factory=dict[str, Any])
    # Identifies this writer in the names of its frames.
    writer: str = field(factory=lambda: writer_id())
    # The commit for which work outside the session was prepared, until the session has adopted it.
    prepared: CommitPlace | None = None
    # Awaits the commits of calls on an event loop, if the session was opened there.
    queue: CommitQueue | None = None
    # The steps that an event loop has begun. Any other change to the session completes them first.
    pending_steps: PendingSteps[None] | None = None
    # Whether the operations of the store are so short that an event loop need not await them.
    is_brief: bool = True
    # Whether some contents of the current state are not in memory, but read when they are needed.
    has_unread: bool = False
    # How often the session has applied what others stored.
    adopted: int = 0
    _count: int = 0
    _process: int = field(factory=os.getpid)
    _frames: FrameWriter = field(factory=FrameWriter)
    # Frames of failed changes that may nevertheless have been stored.
    _uncertain: set[str] = field(factory=set[str])
    # The change that was stored last: the session may have been interrupted before it adopted it.
    stored_last: StoredChange | None = None
    _rules: Rules | None = None
    # The same rules if `_append_rows` can store every change under them, and the method with which it appends.
    _usual_rules: Rules | None = None
    _append_next: Appender | None = None
    _is_direct: bool = field(
        default=Factory(lambda self: isinstance(self.store, DirectEventStore), takes_self=True), init=False
    )
    _undeclared: frozenset[str] = frozenset()

    @property
    def contents(self) -> StreamContents:
        """The source of the blobs of the stream."""
        return StreamContents(self.store, self.stream)

    def commit(self, session: SessionCore, after: Timeline, journals: Mapping[str, Journal] = NO_JOURNALS) -> bool:
        """Store the change to `after`; see `SessionCore._stored`."""
        if self.complete_pending():
            return False
        return run(self.commit_all(session, (after,), journals), self.store)

    def commit_all(
        self, session: SessionCore, afters: Sequence[Timeline], journals: Mapping[str, Journal] = NO_JOURNALS
    ) -> Steps[bool]:
        """Store the changes from the trunk to each of these timelines in turn: all of them or none.

        Returns false if, instead, the session was brought up to date with what others stored.
        """
        retract(self, session)
        before = session._trunk
        first = afters[0]
        is_long = first.seq > before.seq + PART and not before.seq and self.queue is None
        if first.base is not before.base or is_long:
            return start_anew(self, session, first, journals)
        changes: list[tuple[Timeline, Timeline, Sequence[Row]]] = []
        for after in afters:
            rows = after.rows.after(before.rows._length) if after.rows is not before.rows else ()
            changes.append((before, after, rows))
            before = after
        return (yield from self._commit(session, changes, journals))

    def is_usual(self, session: SessionCore) -> bool:
        """Return whether `commit_plain` can store a change that only adds plain records."""
        return session._rules is self._usual_rules

    def commit_plain(self, session: SessionCore, before: Timeline, after: Timeline) -> bool:
        """Store the change from the trunk to `after`; return false, with nothing changed, if `commit_all` has to."""
        retract(self, session)
        if after.base is not before.base:
            return False
        return self._append_rows(session, before, after, after.rows.after(before.rows._length))

    def commit_row(self, session: SessionCore, row: Row, state: Table, logs: Table) -> bool:
        """Store one row that is about to be added to the trunk, with the slices that it leads to."""
        before = session._trunk
        if self.pending_steps is not None:
            base = before.point(), before.copy()
            self.complete_pending()
            self.base = base
            return False
        retract(self, session)
        if self._append_rows(session, before, before, (row,)):
            return True
        after = before.copy()
        after.state, after.logs = state, logs
        return run(self._commit(session, ((before, after, (row,)),)), self.store)

    def complete_pending(self) -> bool:
        """Complete the steps that an event loop has begun. Return whether there were any."""
        steps = self.pending_steps
        if steps is not None:
            steps.complete(self.store)
            self.pending_steps = None
        return steps is not None

    def _append_rows(self, session: SessionCore, before: Timeline, after: Timeline, rows: Sequence[Row]) -> bool:
        """Store plain records, which is all that nearly every call adds.

        Return false if `_commit` has to store the change.

        In that case nothing has changed. This takes a third of the time of `_commit`.
        """
        if (
            session._rules is not self._usual_rules
            or after.externals is not self.externals
            or after.snapshots is not before.snapshots
        ):
            return False
        name, seq = self._next_name(session), before.seq
        append = self._append_next
        if append is None:
            append = self._append_next = cast(DirectEventStore, self.store).appender(self.stream)
        written = self._frames.plain(rows, name, seq, session._counter)
        if written is None:
            return False
        data, blobs = written
        contents, size = None, len(data)
        if blobs is not None:
            if blobs.stored:
                return False
            contents = blobs.by_digest
        self.stored_last = StoredChange(self.head, (name,), seq, len(rows), before.snapshots)
        try:
            if not append(self.head, data, contents):
                self.stored_last = None
                self._append_next = None
                return False
            self.head = number = self.head + 1
        except BaseException:
            self._uncertain.add(name)
            raise
        checkpoints = self.checkpoints
        checkpoints.pending = pending = checkpoints.pending + size
        if pending > LEAST and pending > checkpoints.due:
            self._usual_rules = None
        if contents:
            size += sum(map(len, contents.values()))
        checkpoints.history.add(number, seq, rows, size)
        return True

    def _commit(
        self,
        session: SessionCore,
        changes: Sequence[tuple[Timeline, Timeline, Sequence[Row]]],
        journals: Mapping[str, Journal] = NO_JOURNALS,
    ) -> Steps[bool]:
        """Append a frame for each change: the timelines before and after it, and its rows."""
        checkpoints, rules = self.checkpoints, session._rules
        if checkpoints.pending > checkpoints.due:
            checkpoints.begin(session, self.head)
        is_known = rules is self._rules and not self._undeclared
        installed, undeclared = news = ((), self._undeclared) if rules is self._rules else self._news_of(rules)
        externals = self.externals
        names: list[str] = []
        frames: list[bytes] = []
        sizes: list[int] = []
        contents = NO_CONTENTS
        for before, after, rows in changes:
            name = self._next_name(session)
            written = None
            if is_known and after.externals is externals and after.snapshots is before.snapshots:
                written = self._frames.plain(rows, name, before.seq, session._counter)
            if written is None:
                change = Change(before, after, rows, externals, installed, undeclared)
                written = self._frames.frame(rules, change, name, session._counter)
            data, blobs = written
            names.append(name)
            frames.append(data)
            size = len(data)
            if blobs is not None:
                size += sum(map(len, blobs.by_digest.values()))
                contents = {**contents, **blobs.by_digest} if contents else blobs.by_digest
                if blobs.stored:
                    found = {digest: own.values() for digest, own in blobs.stored.items()}
                    missing = partial(self.contents.missing_of, found, including_known=True)
                    contents = {**contents, **(yield from supplied(missing))}
            sizes.append(size)
            externals, installed = after.externals, ()
        start, end, count = changes[0][0], changes[-1][1], sum(len(rows) for _, _, rows in changes)
        stored = None
        if count or end.snapshots is not start.snapshots:
            stored = StoredChange(self.head, names, start.seq, count, start.snapshots)
        if not (yield from self._append(session, names, frames, contents, journals)):
            return False
        self.stored_last = stored
        if rules is not self._rules:
            # Only now: readers do not learn of these slices if the frame was not stored.
            self._rules, self._undeclared = rules, undeclared
            self.known_slices |= {spec.tag for spec in news[0]}
        self.externals = externals
        for number, ((before, _, rows), size) in enumerate(
            zip(changes, sizes, strict=True), self.head - len(frames) + 1
        ):
            if rows:
                checkpoints.history.add(number, before.seq, rows, size)
        checkpoints.pending += sum(map(len, frames))
        is_unusual = self._undeclared or checkpoints.pending > checkpoints.due or self.lease or self.queue
        self._usual_rules = rules if self._is_direct and not is_unusual else None
        return True

    def _next_name(self, session: SessionCore) -> str:
        if self._process != os.getpid():
            # Frames of a process and of its parent need different names: an equal name means one frame sent twice.
            self._process, self.writer, self._append_next = os.getpid(), writer_id(), None
            self.checkpoints.forget_thread()
            if self.merges:
                session._id_suffix = id_suffix(self.writer)
        self._count += 1
        return f"{self.writer}-{self._count}"

    def _append(
        self,
        session: SessionCore,
        names: Sequence[str],
        frames: list[bytes],
        contents: Mapping[str, bytes],
        journals: Mapping[str, Journal],
    ) -> Steps[bool]:
        """Append frames with these names. Return false if, instead, frames that others stored were read."""
        if journals:
            if not self.head:
                # The storage may not exist yet: a later search for the commit can then distinguish that from an
                # unreachable one.
                yield PutContents(self.stream, {digest_of(b"").hex(): b""})
            place = CommitPlace(lasting_url(self.store.url), self.stream, self.head + 1, names[0], session._trunk.seq)
            prepare_all(journals, place)
            self.prepared = place
        try:
            self.head = yield from self._append_once(self.head, frames, contents)
        except StreamConflict as conflict:
            if conflict.actual < conflict.expected:
                self.prepared = None
                raise self._gone("change", conflict.actual) from None
            base = session._trunk.point(), session._trunk.copy()
            others = list((yield Read(self.stream, self.head)))
            if not others:
                self.prepared = None
                raise frames_missing(self.stream, self.store.url, self.head, conflict.actual) from None
            first = name_of(others[0])
            if first == names[0]:
                # It was stored by an attempt whose outcome was unknown.
                self.head += len(frames)
                return True
            self.prepared = None
            is_own = first in self._uncertain and (self.merges or self._uncertain.issuperset(map(name_of, others)))
            if is_own:
                yield from undo_failed(self, session, others)
            elif self.merges:
                yield from take(self, session, others)
            else:
                raise SessionConflict(session.session_id, conflict.expected, conflict.actual) from None
            self.base = base
            return False
        except BaseException:
            self._uncertain.update(names)
            raise
        return True

    def _gone(self, action: str, head: int) -> StorageError:
        return StorageError(
            f"cannot {action} session {self.stream!r} of {self.store.url}: it ends at frame {head}, before frame "
            f"{self.head}, which was stored: it was deleted, its folder was removed, or an older copy was put in its "
            f"place; open it again"
        )

    def was_stored(self, session: SessionCore, place: CommitPlace) -> Steps[bool]:
        """Return whether a commit is in this stream, and read what the session has not read yet.

        Raises `StorageError` if that cannot be determined.
        """
        fencing = None if self.lease is None else self.lease.lease.fencing
        found = yield from was_stored(self.store.url, place, fencing=fencing)
        if found:
            # It must be read and not rolled back: what was done outside the session stays too.
            self._uncertain.discard(place.name)
        if session._trunk.seq == place.after and self.head >= place.number:
            # It was interrupted after storing the commit and before adopting it.
            self.head = place.number - 1
        if self.head < place.number:
            yield from refreshed(self, session)
        return found

    def _append_once(self, head: int, frames: list[bytes], contents: Mapping[str, bytes]) -> Steps[int]:
        fencing = None if self.lease is None else (yield from self.lease.fencing())
        attempt = 1
        while True:
            try:
                last: int = yield from patiently(Append(self.stream, head, frames, contents or None, fencing))
                return last
            except OutcomeUnknown:
                # Frames that are there already are recognized.
                if attempt == ATTEMPTS:
                    raise
                attempt += 1
            except StorageError:
                if attempt == 1:
                    # Nothing was stored.
                    self.prepared = None
                raise

    def keep_others_out(self, spent: float) -> None:
        """Lease the stream for the next attempt at a compaction. The last attempt took `spent` seconds."""
        if self.lease is None or self.lease.is_of_compaction:
            take = TakeLease(self.stream, f"{COMPACTION}{self.writer}", compaction_seconds(spent))
            self.lease = HeldLease(self.store, run(patiently(take), self.store))

    def let_others_in(self) -> None:
        """Release the lease of a compaction."""
        lease = self.lease
        if lease is not None and lease.is_of_compaction:
            self.lease = None
            with suppress(StorageError):
                # Otherwise it expires.
                lease.release()

    def _news_of(self, rules: Rules) -> tuple[tuple[SliceSpec, ...], frozenset[str]]:
        """Return the slices that readers do not know about yet, and those whose reducers they cannot know."""
        installed = tuple(spec for tag, spec in sorted(rules.specs.items()) if tag not in self.known_slices)
        return installed, undeclared_slices(rules)

    def before_others(self) -> tuple[Point, Timeline]:
        """Return the trunk's position before `commit_row` read what others had stored, and a copy of it."""
        if self.base is None:
            raise SessionError("nobody else has changed the session")
        return self.base

    def refresh(self, session: SessionCore) -> int:
        """Apply what others stored, and return the number of new records."""
        self.complete_pending()
        before = session._trunk.seq
        run(refreshed(self, session), self.store)
        return session._trunk.seq - before

    @property
    def is_behind(self) -> bool:
        """Whether others stored frames that the session has not read."""
        return self.store.head(self.stream) > self.head

    def catch_up(self, session: SessionCore) -> bool:
        """Apply what others stored, and return whether there was anything.

        Raises `SessionConflict` if there is and the session does not merge.
        """
        found = self.store.head(self.stream)
        if found <= self.head:
            return False
        if not self.merges:
            raise SessionConflict(session.session_id, self.head, found)
        self.refresh(session)
        return True

    def reader(self, rules: Rules, line: Timeline, counter: int, *, is_new: bool = False) -> FrameReader:
        """Return a reader that continues a timeline."""
        return FrameReader(
            FrameDecoder(rules, self.contents),
            line,
            counter,
            is_new,
            self.checkpoints.history.note,
            self.load_reset,
        )

    def load_reset(self, number: int, frame: Frame) -> tuple[Timeline, Rules]:
        """Return the timeline and the rules to which a frame resets the session."""
        text = self.contents.read(bytes.fromhex(frame["reset"]))
        self.has_unread = True
        line, self.header, rules = self.checkpoints.load(text, f"frame {number}")
        return line, rules

    def checkpoint(self, session: SessionCore) -> None:
        """Write a checkpoint and wait for it; not to be called under the session's lock."""
        self.checkpoints.wait()
        with session.lock:
            retract(self, session)
            if self.head:
                self.checkpoints.begin(session, self.head, is_forced=True)
        self.checkpoints.wait()

    def flush(self) -> None:
        """Make everything durable; not to be called under the session's lock.

        Raises `StorageError` if what was stored is no longer there.
        """
        self.checkpoints.wait()
        self.store.flush()
        if self.flushed != self.head:
            self.check_end(self.store.head(self.stream))

    def check_end(self, found: int) -> None:
        """Raise `StorageError` if the stream, which ends at frame `found`, has lost its end."""
        if found < self.head:
            raise self._gone("flush", found)
        self.flushed = self.head

    @property
    def has_uncertain(self) -> bool:
        """Whether changes failed or were cancelled that may nevertheless have been stored."""
        return bool(self._uncertain)

    def close(self, session: SessionCore) -> None:
        """Undo what failed and was stored nevertheless, make everything durable, and release lease and storage."""
        if self.is_closed:
            return
        if self.queue is not None and self.queue.loop.is_running():
            # Its client can only be closed there.
            self.queue.loop.call_soon_threadsafe(self.queue.close_soon)
            return
        self.is_closed = True
        with ExitStack() as stack:
            if self.owns_store:
                stack.callback(self.store.close)
            if self.lease is not None:
                stack.callback(self.lease.release)
            with session.lock:
                run(settled(self, session), self.store)
            self.flush()


def writer_id() -> str:
    """Return a unique name for a writer."""
    return uuid4().hex[:12]


def frames_missing(stream: str, url: str, after: int, head: int) -> StorageDamaged:
    """Return the error for a stream whose head promises frames that are missing."""
    return StorageDamaged(
        f"frames {after + 1} to {head} of session {stream!r} are missing in {url}; put them back from a backup"
    )


def id_suffix(writer: str) -> str:
    """Return the suffix of the ids that a session assigns while others change it too."""
    return f"-{writer[:8]}"
