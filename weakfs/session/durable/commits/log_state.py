"""The state of a commit log: where its stream ends, what other readers know, and how frames are appended and read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from attrs import Factory, field

from weakfs.class_decorators import define
from weakfs.session.durable.checkpoints.checkpoints import Checkpointing
from weakfs.session.durable.commits.pending_steps import PendingSteps
from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frames.decoder import Frame, FrameDecoder
from weakfs.session.durable.frames.reader import FrameReader
from weakfs.session.durable.frames.writer import NO_EXTERNALS, FrameWriter
from weakfs.session.durable.held_lease import COMPACTION, MOST, HeldLease, compaction_seconds, patiently, taken
from weakfs.session.errors import SessionError
from weakfs.session.external_filesystems import CommitPlace
from weakfs.session.history.snapshot_table import SnapshotTable
from weakfs.session.history.timeline import Point, Timeline
from weakfs.session.slices.event_reducers import Rules
from weakfs.session.stored_state import SessionTrunk
from weakfs.storage.errors import OutcomeUnknown, StorageError
from weakfs.storage.event_store import Appender, DirectEventStore, EventStore
from weakfs.storage.event_store_operations import Append, Head, TakeLease
from weakfs.storage.steps import Steps, run

# How many times to try to append a frame if the outcome is unknown each time.
ATTEMPTS = 3


# A change that is in the stream: the number of the frame before it, the names of its frames, the record before it, how
# many records it adds, and the snapshots before it. A plain tuple, because one is made for each call.
StoredChange = tuple[int, Sequence[str], int, int, SnapshotTable]


@define(eq=False)
class LogState:
    """What a commit log knows about its stream; `CommitLog` commits changes with it."""

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
    # The entries of `Timeline.externals` that are stored: snapshots of attached filesystems from before rollbacks.
    externals: Mapping[int, Any] = NO_EXTERNALS
    # The session's own fields in the document that was read last.
    header: dict[str, Any] = field(factory=dict[str, Any])
    # Identifies this writer in the names of its frames.
    writer: str = field(factory=lambda: writer_id())
    # The commit for which work outside the session was prepared, until the session has adopted it.
    prepared: CommitPlace | None = None
    # Whether an event loop awaits the commits of calls.
    is_awaited: bool = False
    # The steps that an event loop has begun. Any other change to the session completes them first.
    pending_steps: PendingSteps[None] | None = None
    # Whether the operations of the store are so short that an event loop need not await them.
    is_brief: bool = True
    # Whether some contents of the current state are not in memory, but read when they are needed.
    has_unread: bool = False
    # How many times the session has applied what others stored.
    adopted: int = 0
    _count: int = 0
    _process: int = field(factory=os.getpid)
    frame_writer: FrameWriter = field(factory=FrameWriter)
    # Frames of failed changes that may nevertheless have been stored.
    uncertain: set[str] = field(factory=set[str])
    # The change that was stored last: the session may have been interrupted before it adopted it.
    stored_last: StoredChange | None = None
    _rules: Rules | None = None
    # The rules under which `commit_plain` can store a change that only adds plain records, if there are any, and the
    # method with which it appends.
    plain_rules: Rules | None = None
    _append_next: Appender | None = None
    _is_direct: bool = field(
        default=Factory(lambda self: isinstance(self.store, DirectEventStore), takes_self=True), init=False
    )
    _undeclared: frozenset[str] = frozenset()

    @property
    def contents(self) -> StreamContents:
        """The source of the blobs of the stream."""
        return StreamContents(self.store, self.stream)

    def next_name(self, session: SessionTrunk) -> str:
        """Return the name of the next frame."""
        if self._process != os.getpid():
            # Frames of a process and of its parent need different names: the same name means a frame sent twice.
            self._process, self.writer, self._append_next = os.getpid(), writer_id(), None
            self.checkpoints.forget_thread()
            if self.merges:
                session._id_suffix = id_suffix(self.writer)
        self._count += 1
        return f"{self.writer}-{self._count}"

    def complete_pending(self) -> bool:
        """Complete the steps that an event loop has begun. Return whether there were any."""
        steps = self.pending_steps
        if steps is not None:
            steps.complete(self.store)
            self.pending_steps = None
        return steps is not None

    def append_once(self, head: int, frames: list[bytes], contents: Mapping[str, bytes]) -> Steps[int]:
        """Append frames after frame `head`, and return the number of the last one.

        Tries again if the storage does not say whether they were appended. Raises `StreamConflict` if other
        frames were appended instead.
        """
        fencing = None
        if self.lease is not None:
            if self.lease.is_due and (found := (yield Head(self.stream))) < self.head:
                # The stream was deleted. Leasing it would create it again, or lock out the writers of a new one.
                raise self.gone("change", found)
            fencing = yield from self.lease.fencing()
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

    def take_compaction_lease(self, spent: float, *, most: float = MOST) -> HeldLease:
        """Lease the stream for the next attempt at replacing history, unless the session holds a lease anyway.

        The last attempt took `spent` seconds; the lease lasts at most `most` seconds.
        """
        if self.lease is None or self.lease.is_of_compaction:
            if (found := self.store.head(self.stream)) < self.head:
                # The stream was deleted. Leasing it would create it again, or lock out the writers of a new one.
                raise self.gone("compact", found)
            take = TakeLease(self.stream, f"{COMPACTION}{self.writer}", compaction_seconds(spent, most))
            self.lease = HeldLease(self.store, run(taken(take), self.store))
        return self.lease

    def release_compaction_lease(self) -> None:
        """Release the lease of a compaction."""
        lease = self.lease
        if lease is not None and lease.is_of_compaction:
            self.lease = None
            with suppress(StorageError):
                # Otherwise the lease expires.
                lease.release()

    def before_others(self) -> tuple[Point, Timeline]:
        """Return the trunk's position before `commit_row` read what others had stored, and a copy of it."""
        if self.base is None:
            raise SessionError("nobody else has changed the session")
        return self.base

    @property
    def is_behind(self) -> bool:
        """Whether others stored frames that the session has not read."""
        return self.store.head(self.stream) > self.head

    def check_end(self, found: int) -> None:
        """Raise `StorageError` if the stream, which ends at frame `found`, has lost its end."""
        if found < self.head:
            raise self.gone("flush", found)
        self.flushed = self.head

    @property
    def has_uncertain(self) -> bool:
        """Whether there are failed or cancelled changes that may nevertheless have been stored."""
        return bool(self.uncertain)

    def gone(self, action: str, head: int) -> StorageError:
        """Return the error for a stream that ends at frame `head`, before what was stored."""
        return StorageError(
            f"cannot {action} session {self.stream!r} of {self.store.url}: it ends at frame {head}, before frame "
            f"{self.head}, which was stored: it was deleted, its folder was removed, or an older copy was put in its "
            f"place; open it again"
        )

    def reader(self, rules: Rules, line: Timeline, counter: int, *, is_new: bool = False) -> FrameReader:
        """Return a reader that continues a timeline."""
        decoder = self.checkpoints.history.decoder
        return FrameReader(
            FrameDecoder(rules, self.contents, decoder.content_from_frames, decoder.max_expansion),
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


def writer_id() -> str:
    """Return a unique name for a writer."""
    return uuid4().hex[:12]


def id_suffix(writer: str) -> str:
    """Return the suffix of the ids that a session assigns while others change it too."""
    return f"-{writer[:8]}"
