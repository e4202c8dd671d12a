"""The commit log of a durable session: every change is one frame of a stream, appended before it takes effect."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
from attrs import define, field

from weakfs.session.blobs.blob import digest_of
from weakfs.session.durable.checkpoints.checkpoints import Checkpointing
from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frames.decoder import Frame, FrameDecoder, parsed
from weakfs.session.durable.frames.reader import FrameReader
from weakfs.session.durable.frames.writer import NO_EXTERNALS, Change, FrameWriter
from weakfs.session.durable.lease import HeldLease
from weakfs.session.durable.operations import Append, PutContents, Read, Steps, run, supplied
from weakfs.session.durable.outcome import lasting_url, was_stored
from weakfs.session.errors import SessionConflict, SessionError
from weakfs.session.events import RolledBack
from weakfs.session.external import CommitPlace, Journal, prepare_all
from weakfs.session.history.timeline import Point, Timeline
from weakfs.session.replay.reduction import Row
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.slice import SliceSpec
from weakfs.session.slices.table import Table
from weakfs.storage.errors import OutcomeUnknown, StorageDamaged, StorageError, StreamConflict
from weakfs.storage.event_store import EventStore
from weakfs.storage.event_store import Frame as StoredFrame

if TYPE_CHECKING:
    from weakfs.session.core import SessionCore
    from weakfs.session.durable.commit_queue import CommitQueue
    from weakfs.session.durable.flight import Flight

# How often to try appending a frame if the outcome is unknown each time.
ATTEMPTS = 3
# How many records a frame of imported history contains.
PART = 256
# The number of a frame, the frame and its size.
Note = tuple[int, Frame, int]

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
    # The newest frame that is known to be as durable as the storage can make it, or was there when it was opened.
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
    # The steps that an event loop has begun; whoever changes the session in the meantime completes them first.
    flight: Flight[None] | None = None
    # Whether the store is memory or a local file, so that an event loop need not await it.
    is_brief: bool = True
    # Whether some contents of the current state are not in memory, but read when they are needed.
    has_unread: bool = False
    _count: int = 0
    _process: int = field(factory=os.getpid)
    _frames: FrameWriter = field(factory=FrameWriter)
    # Frames of failed changes that may nevertheless have been stored.
    _uncertain: set[str] = field(factory=set[str])
    _rules: Rules | None = None
    _undeclared: frozenset[str] = frozenset()

    @property
    def contents(self) -> StreamContents:
        """The source of the blobs of the stream."""
        return StreamContents(self.store, self.stream)

    def commit(self, session: SessionCore, after: Timeline, journals: Mapping[str, Journal] = NO_JOURNALS) -> bool:
        """Store the change to `after`; see `SessionCore._stored`."""
        if self.land():
            return False
        return run(self.commit_all(session, (after,), journals), self.store)

    def commit_all(
        self, session: SessionCore, afters: Sequence[Timeline], journals: Mapping[str, Journal] = NO_JOURNALS
    ) -> Steps[bool]:
        """Store a change to the first of these timelines, from there to the second, and so on, all or none of them.

        Returns false if, instead, the session was brought up to date with what others stored.
        """
        before = session._trunk
        first = afters[0]
        is_long = first.seq > before.seq + PART and not before.seq and self.queue is None
        if first.base is not before.base or is_long:
            return self._start_anew(session, first, journals)
        changes: list[tuple[Timeline, Timeline, Sequence[Row]]] = []
        for after in afters:
            rows = after.rows.after(before.rows._length) if after.rows is not before.rows else ()
            changes.append((before, after, rows))
            before = after
        return (yield from self._commit(session, changes, journals))

    def commit_row(self, session: SessionCore, row: Row, state: Table, logs: Table) -> bool:
        """Store one row that is about to be added to the trunk, with the slices that it leads to."""
        before = session._trunk
        if self.flight is not None:
            base = before.point(), before.copy()
            self.land()
            self.base = base
            return False
        if session._rules is self._rules and not self._undeclared and before.externals is self.externals:
            return run(self._commit(session, ((before, before, (row,)),)), self.store)
        after = before.copy()
        after.state, after.logs = state, logs
        return run(self._commit(session, ((before, after, (row,)),)), self.store)

    def land(self) -> bool:
        """Complete the steps that an event loop has begun. Return whether there were any."""
        flight = self.flight
        if flight is not None:
            flight.land(self.store)
            self.flight = None
        return flight is not None

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
        if not (yield from self._append(session, names, frames, contents, journals)):
            return False
        if rules is not self._rules:
            # Only now: a frame that was not stored has not told readers about these slices.
            self._rules, self._undeclared = rules, undeclared
            self.known_slices |= {spec.tag for spec in news[0]}
        self.externals = externals
        for number, ((before, _, rows), size) in enumerate(
            zip(changes, sizes, strict=True), self.head - len(frames) + 1
        ):
            if rows:
                checkpoints.history.add(number, before.seq, rows, size)
        checkpoints.pending += sum(map(len, frames))
        return True

    def _next_name(self, session: SessionCore) -> str:
        if self._process != os.getpid():
            # Frames of a process and of its parent need different names: an equal name means one frame sent twice.
            self._process, self.writer = os.getpid(), writer_id()
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
            first = _name(others[0])
            if first == names[0]:
                # It was stored by an attempt whose outcome was unknown.
                self.head += len(frames)
                return True
            self.prepared = None
            if first in self._uncertain:
                yield from self._undo(session, others)
            elif self.merges:
                yield from self._take(session, others)
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
            yield from self.refreshed(session)
        return found

    def _append_once(self, head: int, frames: list[bytes], contents: Mapping[str, bytes]) -> Steps[int]:
        fencing = None if self.lease is None else (yield from self.lease.fencing())
        attempt = 1
        while True:
            try:
                last: int = yield Append(self.stream, head, frames, contents or None, fencing)
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

    def _undo(self, session: SessionCore, others: list[StoredFrame]) -> Steps[None]:
        """Read changes of this session that failed but were stored nevertheless, and roll them back.

        What they did outside the session was undone when they failed. If the rollback cannot be stored, the session
        stays as it was, without the changes; likewise if somebody else appends in the meantime, since the caller tries
        again. A change on which others have built stays.
        """
        before = session._trunk
        reader, notes, number = yield from supplied(partial(self._read, session, others))
        line = reader.line
        if line.seq == before.seq or not all(_name(frame) in self._uncertain for frame in others):
            self._adopt(session, reader, notes, number)
            return
        after = line.copy()
        session._rules, rules = reader.rules, session._rules
        try:
            session._apply(after, RolledBack(before.seq, None, before.state), None)
            rows = tuple(after.rows.since(len(line.rows)))
            name = self._next_name(session)
            change = Change(line, after, rows, line.externals, (), undeclared_slices(reader.rules))
            data, blobs = self._frames.frame(reader.rules, change, name, max(session._counter, reader.counter))
        finally:
            session._rules = rules
        self._uncertain.add(name)
        try:
            head = yield from self._append_once(number, [data], blobs.by_digest)
        except StreamConflict:
            return
        reader.line = after
        self._adopt(session, reader, notes, head)
        self.checkpoints.history.add(head, line.seq, rows, len(data))

    def _news_of(self, rules: Rules) -> tuple[tuple[SliceSpec, ...], frozenset[str]]:
        """Return the slices that readers do not know about yet, and those whose reducers they cannot know."""
        installed = tuple(spec for tag, spec in sorted(rules.specs.items()) if tag not in self.known_slices)
        return installed, undeclared_slices(rules)

    def start(self, session: SessionCore, line: Timeline) -> None:
        """Store the timeline of another session in an empty stream. Raise `SessionConflict` if it is not empty."""
        if not self._start_anew(session, line):
            raise SessionConflict(session.session_id, 0, self.head)

    def _start_anew(self, session: SessionCore, after: Timeline, journals: Mapping[str, Journal] = NO_JOURNALS) -> bool:
        """Store a timeline that does not continue the stored one: a compacted or imported history."""
        history = self.checkpoints.history
        before = session._trunk
        name = self._next_name(session)
        frames: list[bytes] = []
        contents: dict[str, bytes] = {}
        if not before.seq:
            # None of its history is in storage yet.
            history.forget()
            rows = iter(after.rows)
            seq = after.dropped
            while part := list(islice(rows, PART)):
                data, blobs = self._frames.part(session._rules, part, seq, name=f"{name}.{len(frames)}")
                frames.append(data)
                contents.update(blobs.by_digest)
                contents.update(
                    self.contents.missing_of({digest: own.values() for digest, own in blobs.stored.items()})
                )
                history.add(self.head + len(frames), seq, part, len(data) + sum(map(len, blobs.by_digest.values())))
                seq += len(part)
        whole = before if before.seq else None
        moment = self.checkpoints.moment(session, self.head + len(frames) + 1, after, whole)
        text, written, needed = self.checkpoints.document(moment, is_reset=True)
        digest = digest_of(text).hex()
        if self.head and (head := self.store.head(self.stream)) < self.head:
            # Contents would make it anew.
            raise self._gone("change", head)
        self.checkpoints.put(needed | {digest: text})
        reset: Frame = {"id": name, "after": before.seq, "counter": session._counter, "reset": digest}
        frames.append(orjson.dumps(reset))
        is_stored = False
        try:
            first = name if len(frames) == 1 else f"{name}.0"
            is_stored = run(self._append(session, [first], frames, contents, journals), self.store)
        finally:
            if not is_stored and len(frames) > 1:
                history.forget()
        if not is_stored:
            return False
        self.known_slices = frozenset(session._rules.specs)
        self.externals = after.externals
        self.checkpoints.replace(session, moment, text, written)
        return True

    def before_others(self) -> tuple[Point, Timeline]:
        """Return the trunk's position before `commit_row` read what others had stored, and a copy of it."""
        if self.base is None:
            raise SessionError("nobody else has changed the session")
        return self.base

    def refresh(self, session: SessionCore) -> int:
        """Apply what others stored, and return the number of new records."""
        self.land()
        before = session._trunk.seq
        run(self.refreshed(session), self.store)
        return session._trunk.seq - before

    def refreshed(self, session: SessionCore) -> Steps[None]:
        """Apply what others stored."""
        while self._uncertain:
            found = list((yield Read(self.stream, self.head)))
            if not found or _name(found[0]) not in self._uncertain:
                break
            yield from self._undo(session, found)
        frames: Iterable[StoredFrame] = yield Read(self.stream, self.head)
        # Reading them may be repeated, if contents have to be awaited.
        yield from self._take(session, frames if self.queue is None else list(frames))

    def _take(self, session: SessionCore, frames: Iterable[StoredFrame]) -> Steps[None]:
        reader, notes, last = yield from supplied(partial(self._read, session, frames))
        if last:
            self._adopt(session, reader, notes, last)

    def _read(self, session: SessionCore, frames: Iterable[StoredFrame]) -> tuple[FrameReader, list[Note], int]:
        """Apply frames to a copy of the trunk.

        Also returns what the index of the history must record about them, and the number of the last one.
        """
        notes: list[Note] = []
        reader = self.reader(session._rules, session._trunk.copy(), session._counter)
        reader.note = lambda *note: notes.append(note)
        return reader, notes, reader.apply(frames)

    def _adopt(self, session: SessionCore, reader: FrameReader, notes: list[Note], last: int) -> None:
        line, after = session._trunk, reader.line
        before = line.seq
        rules = session._rules
        session._rules, session._counter = reader.rules, max(session._counter, reader.counter)
        self.known_slices |= reader.rules.specs.keys() - rules.specs.keys()
        line.adopt(after)
        line.base, line.snapshots, line.touched = after.base, after.snapshots, after.touched
        self.head = last
        self.externals = line.externals
        start = max((place for place, (_, frame, _) in enumerate(notes) if "reset" in frame), default=-1) + 1
        for note in notes[start:]:
            self.checkpoints.history.note(*note)
        session._post_since(line, before)

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
            if self.head:
                self.checkpoints.begin(session, self.head, is_forced=True)
        self.checkpoints.wait()

    def flush(self) -> None:
        """Make everything durable; not to be called under the session's lock.

        Raises `StorageError` if what was stored is not there any more.
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

    def close(self) -> None:
        """Make everything durable, and release the lease and the storage."""
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
            self.flush()


def writer_id() -> str:
    """Return a unique name for a writer."""
    return uuid4().hex[:12]


def frames_missing(stream: str, url: str, after: int, head: int) -> StorageDamaged:
    """Return the error for a stream that says that it has frames after one, and has none."""
    return StorageDamaged(
        f"frames {after + 1} to {head} of session {stream!r} are missing in {url}; put them back from a backup"
    )


def id_suffix(writer: str) -> str:
    """Return the suffix of the ids that a session assigns while others change it too."""
    return f"-{writer[:8]}"


def undeclared_slices(rules: Rules) -> frozenset[str]:
    """Return the slices with a reducer that is neither declared by the registry nor marked by the slice type.

    A program registers such a reducer after opening, so records cannot be reduced before that.
    """
    known = Rules.of(rules.registry)
    for spec in rules.specs.values():
        known = known.install(spec.cls, tag=spec.tag, kind=spec.kind)
    found: set[str] = set()
    for event, steps in rules.steps.items():
        declared = {step.tag for step in known.steps.get(event, ())}
        found |= {step.tag for step in steps if step.tag not in declared}
    return frozenset(found)


def _name(frame: StoredFrame) -> str:
    return str(parsed(frame.number, frame.data)["id"])
