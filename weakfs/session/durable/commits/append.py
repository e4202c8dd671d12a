"""Appending frames to the stream of a session, or reading those that others appended first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weakfs.session.blobs.blob import digest_of
from weakfs.session.durable.commits.log_state import LogState
from weakfs.session.durable.commits.refresh import take, undo_failed
from weakfs.session.durable.commits.uncertain_commits import lasting_url
from weakfs.session.durable.frames.decoder import name_of
from weakfs.session.errors import SessionConflict
from weakfs.session.external_filesystems import CommitPlace, Journal, prepare_all
from weakfs.session.stored_state import SessionTrunk
from weakfs.storage.errors import StorageDamaged, StreamConflict
from weakfs.storage.event_store_operations import Head, PutContents, Read
from weakfs.storage.steps import Steps


def append(
    log: LogState,
    session: SessionTrunk,
    names: Sequence[str],
    frames: list[bytes],
    contents: Mapping[str, bytes],
    journals: Mapping[str, Journal],
) -> Steps[bool]:
    """Append frames with these names. Return false if, instead, frames that others stored were read."""
    if journals:
        if not log.head:
            # Create the storage if it does not exist yet: if a later search for the commit finds none, it is then
            # unreachable.
            yield PutContents(log.stream, {digest_of(b"").hex(): b""})
        place = CommitPlace(lasting_url(log.store.url), str(log.stream), log.head + 1, names[0], session._trunk.seq)
        prepare_all(journals, place)
        log.prepared = place
    try:
        log.head = yield from log.append_once(log.head, frames, contents)
    except StreamConflict as conflict:
        if conflict.actual < conflict.expected:
            log.prepared = None
            raise log.gone("change", conflict.actual) from None
        base = session._trunk.point(), session._trunk.copy()
        others = list((yield Read(log.stream, log.head)))
        if not others:
            log.prepared = None
            found: int = yield Head(log.stream)
            if found < conflict.actual:
                # The stream was deleted in the meantime.
                raise log.gone("change", found) from None
            raise frames_missing(log.stream, log.store.url, log.head, conflict.actual) from None
        first = name_of(others[0])
        if first == names[0]:
            # The frames were stored by an attempt whose outcome was unknown.
            log.head += len(frames)
            return True
        log.prepared = None
        is_own = first in log.uncertain and (log.merges or log.uncertain.issuperset(map(name_of, others)))
        if is_own:
            yield from undo_failed(log, session, others)
        elif log.merges:
            yield from take(log, session, others)
        else:
            raise SessionConflict(session.session_id, conflict.expected, conflict.actual) from None
        log.base = base
        return False
    except BaseException:
        log.uncertain.update(names)
        raise
    return True


def frames_missing(stream: str, url: str, after: int, head: int) -> StorageDamaged:
    """Return the error for a stream whose head promises frames that are missing."""
    return StorageDamaged(
        f"frames {after + 1} to {head} of session {stream!r} are missing in {url}; put them back from a backup"
    )
