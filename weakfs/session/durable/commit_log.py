"""The commit log of a durable session: every change is one frame of a stream, appended before it takes effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
from attrs import define, field

from weakfs.session.blobs.blob import digest_of
from weakfs.session.durable.checkpointing import Checkpointing
from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frame_decoder import Frame, FrameDecoder, parsed
from weakfs.session.durable.frame_reader import FrameReader
from weakfs.session.durable.frame_writer import NO_EXTERNALS, Change, FrameWriter
from weakfs.session.durable.lease import HeldLease
from weakfs.session.errors import SessionConflict, SessionError
from weakfs.session.events import RolledBack
from weakfs.session.history.reduction import Row
from weakfs.session.history.timeline import Point, Timeline
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.slice import SliceSpec
from weakfs.session.slices.table import Table
from weakfs.storage.errors import OutcomeUnknown, StreamConflict
from weakfs.storage.event_store import EventStore
from weakfs.storage.event_store import Frame as StoredFrame

if TYPE_CHECKING:
    from weakfs.session.core import SessionCore

# How often a frame is appended if the outcome is unknown each time.
ATTEMPTS = 3
# How many records a frame of imported history holds.
PART = 256


@define(eq=False)
class CommitLog:
    """Writes the changes of one session to its stream. Methods are called under the session's lock, except `close`."""

    store: EventStore
    stream: str
    checkpoints: Checkpointing
    # The number of the newest frame that the session has read or written.
    head: int
    # The slices that a reader knows.
    known_slices: frozenset[str]
    # Whether changes are merged with what others stored first.
    merges: bool = False
    lease: HeldLease | None = None
    # Whether closing the session closes the storage.
    owns_store: bool = False
    is_closed: bool = False
    # The trunk before it was brought up to date with what others stored, and a copy of it.
    base: tuple[Point, Timeline] | None = None
    # What was stored of the snapshots of attached filesystems from before rollbacks.
    externals: Mapping[int, Any] = NO_EXTERNALS
    # The session's own fields in the document that was read last.
    header: dict[str, Any] = field(factory=dict[str, Any])
    # Identifies this writer in the names of its frames.
    writer: str = field(factory=lambda: uuid4().hex[:12])
    _count: int = 0
    _frames: FrameWriter = field(factory=FrameWriter)
    # Frames of failed changes that may have been stored nevertheless.
    _uncertain: set[str] = field(factory=set[str])
    _rules: Rules | None = None
    _undeclared: frozenset[str] = frozenset()

    @property
    def contents(self) -> StreamContents:
        """The source of the blobs of the stream."""
        return StreamContents(self.store, self.stream)

    def commit(self, session: SessionCore, after: Timeline) -> bool:
        """Store the change to `after`; see `SessionCore._stored`."""
        before = session._trunk
        if after.base is not before.base or (after.seq > before.seq + PART and not before.seq):
            return self._start_anew(session, after)
        rows = tuple(after.rows.since(len(before.rows))) if after.rows is not before.rows else ()
        return self._commit(session, before, after, rows)

    def commit_row(self, session: SessionCore, row: Row, state: Table, logs: Table) -> bool:
        """Store one row that is about to be added to the trunk, with the slices that it leads to."""
        before = session._trunk
        if session._rules is self._rules and not self._undeclared and before.externals is self.externals:
            return self._commit(session, before, before, (row,))
        after = before.copy()
        after.state, after.logs = state, logs
        return self._commit(session, before, after, (row,))

    def _commit(self, session: SessionCore, before: Timeline, after: Timeline, rows: tuple[Row, ...]) -> bool:
        checkpoints = self.checkpoints
        if checkpoints.pending > checkpoints.due:
            checkpoints.begin(session, self.head)
        rules = session._rules
        installed = () if rules is self._rules else self._follow_rules(rules)
        self._count += 1
        name = f"{self.writer}-{self._count}"
        change = Change(before, after, rows, self.externals, installed, self._undeclared)
        data, blobs = self._frames.frame(rules, change, name, session._counter)
        contents = blobs.by_digest
        if blobs.stored:
            contents.update(self.contents.missing_of({digest: own.values() for digest, own in blobs.stored.items()}))
        if not self._append(session, name, [data], contents):
            return False
        if installed:
            self.known_slices |= {spec.tag for spec in installed}
        self.externals = after.externals
        if rows:
            checkpoints.history.add(self.head, before.seq, rows)
        checkpoints.pending += len(data)
        return True

    def _next_name(self) -> str:
        self._count += 1
        return f"{self.writer}-{self._count}"

    def _append(self, session: SessionCore, name: str, frames: list[bytes], contents: Mapping[str, bytes]) -> bool:
        """Append frames, the first of which has this name. Return false if what others stored was read instead."""
        try:
            self.head = self._append_once(frames, contents)
        except StreamConflict as conflict:
            base = session._trunk.point(), session._trunk.copy()
            others = list(self.store.read(self.stream, after=self.head))
            first = _name(others[0]) if others else None
            if first == name:
                # It was stored by an attempt whose outcome was unknown.
                self.head += len(frames)
                return True
            if first in self._uncertain:
                self._undo(session, others)
            elif self.merges:
                self._take(session, others)
            else:
                raise SessionConflict(session.session_id, conflict.expected, conflict.actual) from None
            self.base = base
            return False
        except BaseException:
            self._uncertain.add(name)
            raise
        return True

    def _append_once(self, frames: list[bytes], contents: Mapping[str, bytes]) -> int:
        fencing = None if self.lease is None else self.lease.fencing()
        attempt = 1
        while True:
            try:
                return self.store.append(self.stream, self.head, frames, contents=contents or None, fencing=fencing)
            except OutcomeUnknown:
                # Frames that are there already are recognized.
                if attempt == ATTEMPTS:
                    raise
                attempt += 1

    def _undo(self, session: SessionCore, others: list[StoredFrame]) -> None:
        """Read a change of this session that failed and was stored nevertheless, and roll it back.

        What it did outside the session was undone when it failed.
        """
        seq, state = session._trunk.seq, session._trunk.state
        self._take(session, others)
        if session._trunk.seq > seq and len(others) == 1:
            session._apply(session._trunk, RolledBack(seq, None, state), None)

    def _follow_rules(self, rules: Rules) -> tuple[SliceSpec, ...]:
        """Return the slices that readers do not know yet, and note those whose reducers they cannot know."""
        if rules is not self._rules:
            self._rules, self._undeclared = rules, undeclared_slices(rules)
        if rules.specs.keys() <= self.known_slices:
            return ()
        return tuple(spec for tag, spec in sorted(rules.specs.items()) if tag not in self.known_slices)

    def start(self, session: SessionCore, line: Timeline) -> None:
        """Store the timeline of another session in a stream that is empty. Raise `SessionConflict` if it is not."""
        if not self._start_anew(session, line):
            raise SessionConflict(session.session_id, 0, self.head)

    def _start_anew(self, session: SessionCore, after: Timeline) -> bool:
        """Store a timeline that does not continue the stored one: a compacted or imported history."""
        history = self.checkpoints.history
        before = session._trunk
        name = self._next_name()
        frames: list[bytes] = []
        contents: dict[str, bytes] = {}
        if not before.seq:
            # Nothing of its history is in the storage yet.
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
                history.add(self.head + len(frames), seq, part)
                seq += len(part)
        whole = before if before.seq else None
        moment = self.checkpoints.moment(session, self.head + len(frames) + 1, after, whole)
        text, written, needed = self.checkpoints.document(moment)
        digest = digest_of(text).hex()
        self.checkpoints.put(needed | {digest: text})
        reset: Frame = {"id": name, "after": before.seq, "counter": session._counter, "reset": digest}
        frames.append(orjson.dumps(reset))
        is_stored = False
        try:
            is_stored = self._append(session, name if len(frames) == 1 else f"{name}.0", frames, contents)
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
        """Return where the trunk was before `commit_row` read what others had stored, and a copy of it."""
        if self.base is None:
            raise SessionError("nobody else has changed the session")
        return self.base

    def refresh(self, session: SessionCore) -> int:
        """Apply what others stored, and return the number of new records."""
        before = session._trunk.seq
        self._take(session, self.store.read(self.stream, after=self.head))
        return session._trunk.seq - before

    def _take(self, session: SessionCore, frames: Iterable[StoredFrame]) -> None:
        line = session._trunk
        reader = self.reader(session._rules, line.copy(), session._counter)
        last = reader.apply(frames)
        if not last:
            return
        before, after = line.seq, reader.line
        rules = session._rules
        session._rules, session._counter = reader.rules, max(session._counter, reader.counter)
        self.known_slices |= reader.rules.specs.keys() - rules.specs.keys()
        line.adopt(after)
        line.base, line.snapshots, line.touched = after.base, after.snapshots, after.touched
        self.head = last
        self.externals = line.externals
        session._post_since(line, before)

    def reader(self, rules: Rules, line: Timeline, counter: int, *, is_new: bool = False) -> FrameReader:
        """Return a reader that continues a timeline."""
        return FrameReader(
            FrameDecoder(rules, self.contents),
            line,
            counter,
            is_new,
            self.checkpoints.history.note,
            self._reset,
        )

    def _reset(self, number: int, frame: Frame) -> tuple[Timeline, Rules]:
        text = self.contents.read(bytes.fromhex(frame["reset"]))
        line, self.header, rules = self.checkpoints.load(text, f"frame {number}")
        return line, rules

    def checkpoint(self, session: SessionCore) -> None:
        """Write a checkpoint and wait for it; not to be called under the session's lock."""
        self.checkpoints.wait()
        with session.lock:
            if self.head:
                self.checkpoints.begin(session, self.head)
        self.checkpoints.wait()

    def flush(self) -> None:
        """Make everything durable; not to be called under the session's lock."""
        self.checkpoints.wait()
        self.store.flush()

    def close(self) -> None:
        """Make everything durable, and release the lease and the storage."""
        if self.is_closed:
            return
        self.is_closed = True
        self.flush()
        if self.lease is not None:
            self.lease.release()
        if self.owns_store:
            self.store.close()


def undeclared_slices(rules: Rules) -> frozenset[str]:
    """Return the slices with a reducer that neither the registry declares nor the slice type marks.

    A program registers it after opening, so that records cannot be reduced before.
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
