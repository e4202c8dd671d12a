"""Bringing a session up to date: applying what others stored, and undoing its own failed changes that were stored."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from weakfs.session.codec.expansion_limit import ExpansionExceeded
from weakfs.session.durable.commits.log_state import LogState
from weakfs.session.durable.frames.decoder import Frame, name_of
from weakfs.session.durable.frames.reader import FrameReader, undeclared_slices
from weakfs.session.durable.frames.writer import Change
from weakfs.session.errors import SessionFileError
from weakfs.session.history.reduction import changed
from weakfs.session.slices.events import RolledBack
from weakfs.session.stored_state import SessionTrunk
from weakfs.storage.errors import StreamConflict
from weakfs.storage.event_store import Frame as StoredFrame
from weakfs.storage.event_store_operations import Head, Read
from weakfs.storage.steps import Steps, supplied

# How many times frames are read while a compaction drops what they refer to.
ATTEMPTS = 3
# The number of a frame, the frame and its size.
Note = tuple[int, Frame, int]


def retract(log: LogState, session: SessionTrunk) -> None:
    """Treat the change that was stored last as failed if the session was interrupted before it adopted it.

    A signal such as Ctrl-C can arrive between storing and adopting a change. The next frame would then follow a record
    that is not in the session.
    """
    if log.stored_last is None:
        return
    head, names, seq, added, snapshots = log.stored_last
    trunk = session._trunk
    if trunk.seq == seq:
        log.stored_last = None
        if added or trunk.snapshots is snapshots:
            log.uncertain.update(names)
            log.head = head


def undo_failed(log: LogState, session: SessionTrunk, others: list[StoredFrame]) -> Steps[None]:
    """Read changes of this session that failed but were stored nevertheless, and roll them back.

    Their work outside the session was undone when they failed. If the rollback cannot be stored, the session stays as
    it was, without the changes; likewise if somebody else appends in the meantime, since the caller tries again. A
    change that others have built on is kept.
    """
    before = session._trunk
    reader, notes, number = yield from supplied(partial(_read, log, session, others))
    line = reader.line
    if line.seq == before.seq or not all(name_of(frame) in log.uncertain for frame in others):
        _adopt(log, session, reader, notes, number)
        return
    after, rules = line.copy(), reader.rules
    event = RolledBack(before.seq, None, before.state, failed=True)
    state, logs = changed(rules, line.state, line.logs, event)
    shape = rules.registry.by_type[RolledBack]
    row = (session.now(), line.cause, shape.tag, shape.pack(event))
    after.add(row, state, logs)
    name = log.next_name(session)
    change = Change(line, after, (row,), line.externals, (), undeclared_slices(rules))
    data, blobs = log.frame_writer.frame(rules, change, name, max(session._counter, reader.counter))
    log.uncertain.add(name)
    try:
        head = yield from log.append_once(number, [data], blobs.by_digest)
    except StreamConflict:
        return
    reader.line = after
    _adopt(log, session, reader, notes, head)
    log.checkpoints.history.add(head, line.seq, (row,), len(data))


def settled(log: LogState, session: SessionTrunk) -> Steps[None]:
    """Undo changes of this session that failed or were cancelled, but were stored nevertheless."""
    retract(log, session)
    while log.uncertain:
        found = list((yield Read(log.stream, log.head)))
        if not found or name_of(found[0]) not in log.uncertain:
            break
        yield from undo_failed(log, session, found)


def refreshed(log: LogState, session: SessionTrunk) -> Steps[None]:
    """Apply what others stored. Raises `StorageError` if the session was deleted."""
    yield from settled(log, session)
    found: int = yield Head(log.stream)
    if found < log.head:
        raise log.gone("refresh", found)
    if found == log.head:
        return
    frames: Iterable[StoredFrame] = yield Read(log.stream, log.head)
    # The frames may be read again, if contents have to be awaited.
    yield from take(log, session, list(frames) if log.is_awaited else frames)


def take(log: LogState, session: SessionTrunk, frames: Iterable[StoredFrame]) -> Steps[None]:
    """Apply frames that others stored.

    They are read again if contents or frames are missing: a compaction may have dropped these in the meantime, and
    stored what replaces them. In a damaged session, they are missing every time.
    """
    left = ATTEMPTS
    while True:
        try:
            reader, notes, last = yield from supplied(partial(_read, log, session, frames))
        except ExpansionExceeded:
            raise
        except SessionFileError:
            left -= 1
            if not left:
                raise
            frames = list((yield Read(log.stream, log.head)))
        else:
            if last:
                _adopt(log, session, reader, notes, last)
            return


def _read(log: LogState, session: SessionTrunk, frames: Iterable[StoredFrame]) -> tuple[FrameReader, list[Note], int]:
    """Apply frames to a copy of the trunk.

    Also returns what the index of the history must record about them, and the number of the last one.
    """
    notes: list[Note] = []
    # The counter starts from 0, to be the highest of these frames.
    reader = log.reader(session._rules, session._trunk.copy(), 0)
    reader.note = lambda *note: notes.append(note)
    return reader, notes, reader.apply(frames, log.head)


def _adopt(log: LogState, session: SessionTrunk, reader: FrameReader, notes: list[Note], last: int) -> None:
    line, after = session._trunk, reader.line
    before = line.seq
    log.known_slices |= reader.rules.specs.keys() - session._rules.specs.keys()
    session._count_from(reader.counter)
    session._rules, log.stored_last = reader.rules, None
    # Nothing up to the assignment of the new head can be interrupted by a signal.
    line.adopt(after)
    line.base, line.snapshots, line.touched = after.base, after.snapshots, after.touched
    log.head = last
    log.adopted += 1
    log.externals = line.externals
    start = max((place for place, (_, frame, _) in enumerate(notes) if "reset" in frame), default=-1) + 1
    for note in notes[start:]:
        log.checkpoints.history.note(*note)
    session._post_since(line, before)
