"""Storing a timeline that does not continue the stored one, as a separate document: a reset."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import orjson

from weakfs.session.blobs.blob import digest_of
from weakfs.session.durable.checkpoints.checkpoint_document import written_checkpoint
from weakfs.session.durable.commits.append import append
from weakfs.session.durable.commits.log_state import LogState
from weakfs.session.durable.frames.decoder import Frame
from weakfs.session.errors import SessionConflict
from weakfs.session.external_filesystems import Journal
from weakfs.session.history.timeline import Timeline
from weakfs.session.stored_state import SessionTrunk
from weakfs.storage.steps import run

# How many records a frame of imported history contains.
PART = 256


def start_anew(log: LogState, session: SessionTrunk, after: Timeline, journals: Mapping[str, Journal]) -> bool:
    """Store a timeline that does not continue the stored one: a compacted or imported history."""
    history = log.checkpoints.history
    before = session._trunk
    name = log.next_name(session)
    frames: list[bytes] = []
    contents: dict[str, bytes] = {}
    if not before.seq:
        # None of the session's history is in storage yet.
        history.forget()
        rows = iter(after.rows)
        seq = after.dropped
        while part := list(islice(rows, PART)):
            data, blobs = log.frame_writer.part(session._rules, part, seq, name=f"{name}.{len(frames)}")
            frames.append(data)
            contents.update(blobs.by_digest)
            contents.update(log.contents.missing_of({digest: own.values() for digest, own in blobs.stored.items()}))
            history.add(log.head + len(frames), seq, part, len(data) + sum(map(len, blobs.by_digest.values())))
            seq += len(part)
    else:
        history.split(after.dropped)
    whole = before if before.seq else None
    moment = log.checkpoints.moment(session, log.head + len(frames) + 1, after, whole)
    last, there = log.checkpoints.last, log.checkpoints.history.decoder.contents
    text, written, needed = written_checkpoint(moment, last, there, log.checkpoints.writer, is_reset=True)
    digest = digest_of(text).hex()
    if log.head and (head := log.store.head(log.stream)) < log.head:
        # The stream was deleted, and storing contents would create it again.
        raise log.gone("change", head)
    log.checkpoints.put(needed | {digest: text})
    reset: Frame = {"id": name, "after": before.seq, "counter": session._counter, "reset": digest}
    frames.append(orjson.dumps(reset))
    is_stored = False
    try:
        first = name if len(frames) == 1 else f"{name}.0"
        is_stored = run(append(log, session, [first], frames, contents, journals), log.store)
    finally:
        if not is_stored and len(frames) > 1:
            history.forget()
    if not is_stored:
        return False
    log.stored_last = None
    log.known_slices = frozenset(session._rules.specs)
    log.externals = after.externals
    session._trunk = after
    log.checkpoints.replace(before, moment, text, written)
    return True


def start(log: LogState, session: SessionTrunk, line: Timeline) -> None:
    """Store the timeline of another session in an empty stream. Raises `SessionConflict` if it is not empty."""
    if not start_anew(log, session, line, {}):
        raise SessionConflict(session.session_id, 0, log.head)
