"""Opening a session in a storage: reading what it holds, or creating it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from weakfs.session.durable.commit_log import CommitLog
from weakfs.session.durable.contents import StreamContents
from weakfs.session.durable.frame_reader import FrameReader, parsed
from weakfs.session.errors import SessionError, SessionFileError
from weakfs.session.history.log import Log
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.schema import Rules
from weakfs.storage.event_store import EventStore
from weakfs.storage.storage import Storage

if TYPE_CHECKING:
    from weakfs.session.session import Session

Durability = Literal["process", "power", "manual"]
OnConflict = Literal["raise", "merge"]
Where = str | os.PathLike[str] | Storage | EventStore
# How long a lease lasts, in seconds.
LEASE = 30.0


def event_store(where: Where, durability: Durability) -> EventStore:
    """Return the event streams at a path, a URL, or in a storage."""
    if isinstance(where, EventStore):
        return where
    raise SessionError(f"cannot open {where!r:.60}: pass a path, a URL or a storage")


def stream_of(store: EventStore, session_id: str | None) -> str | None:
    """Return the stream of a session: the only one, if none is named. `None` if there is none."""
    if session_id is not None:
        return session_id
    found = store.streams(limit=6)
    if len(found) > 1:
        shown = ", ".join(map(repr, found[:5])) + (", ..." if len(found) > 5 else "")
        raise SessionError(f"cannot choose a session of {store.url}: it holds {shown}; pass session_id")
    return found[0] if found else None


def open_session(session: Session, store: EventStore, stream: str | None, *, merges: bool, exclusive: bool) -> None:
    """Fill a new session from its stream, and let its changes be stored there."""
    name = stream if stream is not None else session.session_id
    lease = store.lease(name, f"{session.session_id}-{id(session)}", LEASE) if exclusive else None
    contents = StreamContents(store, name)
    line = Timeline(touched=Log())
    rules = session._rules
    reader = FrameReader(rules, line, 0, contents.read_many, contents, is_new=True)
    head = reader.apply(store.read(name))
    line.loaded = bool(head)
    if head:
        line.pack_loaded()
        line.forget_checkpoints()
    session._take_over(
        reader.rules, line, {"session_id": name, "origin_id": name, "counter": reader.counter}
    )
    session._log = CommitLog(
        store, name, head, line.copy(), frozenset(reader.rules.specs), merges=merges, lease=lease
    )
