"""The commit log of a durable session: every change is one frame of a stream, appended before it takes effect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import uuid4

from attrs import define, field

from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frame_reader import FrameReader, parsed
from weakfs.session.durable.frame_writer import FrameWriter
from weakfs.session.errors import SessionConflict, SessionError
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.schema import Rules
from weakfs.session.slices.slice import SliceSpec
from weakfs.storage.errors import OutcomeUnknown, StreamConflict
from weakfs.storage.event_store import EventStore, Frame, Lease

if TYPE_CHECKING:
    from weakfs.session.core import SessionCore

# How often a frame is appended again after its outcome was unknown.
RETRIES = 3


@define(eq=False)
class CommitLog:
    """Writes the changes of one session to its stream. Every method is called under the session's lock."""

    store: EventStore
    stream: str
    # The number of the newest frame that the session has read or written.
    head: int
    # The trunk as it was stored last.
    stored: Timeline
    # The slices that a reader knows.
    known_slices: frozenset[str]
    # Whether changes are merged with what others stored first.
    merges: bool = False
    lease: Lease | None = None
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
        before = self.stored
        installed = self._follow_rules(session._rules)
        self._count += 1
        name = f"{self.writer}-{self._count}"
        data, blobs = self._frames.frame(
            session._rules,
            before,
            after,
            name=name,
            counter=session._counter,
            installed=installed,
            undeclared=self._undeclared,
        )
        contents = blobs.by_digest
        if blobs.stored:
            found = {digest: own.values() for digest, own in blobs.stored.items()}
            contents.update(self.contents.missing_of(found))
        try:
            self.head = self._append(data, contents)
        except StreamConflict as conflict:
            others = list(self.store.read(self.stream, after=self.head))
            if others and _name(others[0]) == name:
                # It was stored by an attempt whose outcome was unknown.
                self.head = others[0].number
            else:
                if not self.merges and any(_name(frame) not in self._uncertain for frame in others):
                    raise SessionConflict(session.session_id, conflict.expected, conflict.actual) from None
                self._take(session, others)
                return False
        except OutcomeUnknown:
            self._uncertain.add(name)
            raise
        self._remember(after, installed)
        return True

    def _append(self, data: bytes, contents: dict[str, bytes]) -> int:
        fencing = None if self.lease is None else self.lease.fencing
        for attempt in range(RETRIES):
            try:
                return self.store.append(self.stream, self.head, [data], contents=contents or None, fencing=fencing)
            except OutcomeUnknown:
                if attempt == RETRIES - 1:
                    raise
        raise AssertionError

    def _remember(self, after: Timeline, installed: Iterable[SliceSpec]) -> None:
        self.stored = after.copy()
        if installed:
            self.known_slices |= {spec.tag for spec in installed}

    def _follow_rules(self, rules: Rules) -> tuple[SliceSpec, ...]:
        """Return the slices that readers do not know yet, and note those whose reducers they cannot know."""
        if rules is not self._rules:
            self._rules, self._undeclared = rules, undeclared_slices(rules)
        if rules.specs.keys() <= self.known_slices:
            return ()
        return tuple(spec for tag, spec in sorted(rules.specs.items()) if tag not in self.known_slices)

    def refresh(self, session: SessionCore) -> int:
        """Apply what others stored, and return the number of new records."""
        before = session._trunk.seq
        self._take(session, self.store.read(self.stream, after=self.head))
        return session._trunk.seq - before

    def _take(self, session: SessionCore, frames: Iterable[Frame]) -> None:
        line = session._trunk
        after = line.copy()
        reader = FrameReader(
            session._rules, after, session._counter, self.contents.read_many, self.contents, is_new=False
        )
        last = reader.apply(frames)
        if not last:
            return
        before = line.seq
        rules = session._rules
        session._rules, session._counter = reader.rules, reader.counter
        if rules is not reader.rules:
            self.known_slices |= reader.rules.specs.keys() - rules.specs.keys()
        line.adopt(after)
        line.snapshots, line.touched = after.snapshots, after.touched
        self.head = last
        self.stored = line.copy()
        session._post_since(line, before)

    def close(self) -> None:
        """Make everything durable, and give the lease back."""
        self.store.flush()
        if self.lease is not None:
            self.store.release(self.lease)
            self.lease = None


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


def _name(frame: Frame) -> str:
    name = parsed(frame.number, frame.data)["id"]
    if type(name) is not str:
        raise SessionError(f"frame {frame.number} has the name {name!r:.60}, which is no text")
    return name
