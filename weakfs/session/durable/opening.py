"""Opening a session in storage: reading it, or creating it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import uuid4

from weakfs.platforms import garbage_collection_paused
from weakfs.session.durable.checkpointing import Checkpointing
from weakfs.session.durable.commit_log import CommitLog, id_suffix
from weakfs.session.durable.lease import HeldLease
from weakfs.session.errors import SessionError
from weakfs.session.history.log import Log
from weakfs.session.history.timeline import Timeline
from weakfs.storage.errors import StorageDamaged
from weakfs.storage.event_store import EventStore
from weakfs.storage.locations import open_event_store, url_of
from weakfs.storage.storage import Storage

if TYPE_CHECKING:
    from weakfs.session.session import Session


S = TypeVar("S", bound="Session")

Durability = Literal["process", "power", "manual"]
OnOthers = Literal["raise", "merge"]
# A folder, a URL, or a `Storage` or `EventStore` that is open.
Where = str | os.PathLike[str] | Storage | EventStore
# How long a lease lasts, in seconds.
LEASE = 30.0


def event_store(where: Where, durability: Durability) -> EventStore:
    """Return the event streams in a folder, at a URL, or in a `Storage`.

    A `Storage` and a server are as durable as they are configured to be, whatever `durability` says.
    """
    if isinstance(where, EventStore):
        return where
    if durability not in ("process", "power", "manual"):
        raise ValueError(f"durability is {durability!r}; pass 'process', 'power' or 'manual'")
    if not isinstance(where, str | os.PathLike):
        if not isinstance(where, Storage):
            raise TypeError(f"cannot open {where!r:.60}: it is no storage; pass a folder, a URL or a storage")
        return open_event_store(where)
    url = url_of(where)
    takes_durability = url.startswith(("folder:", "sqlite:")) and "?durability=" not in url
    return open_event_store(f"{url}?durability={durability}" if takes_durability else url)


def stream_of(store: EventStore, session_id: str | None) -> str | None:
    """Return the stream of a session, by default the only one; `None` if there is none."""
    if session_id == "":
        raise ValueError("session_id is ''; pass text, or None for the only session")
    if session_id is not None:
        return session_id
    found = store.streams(limit=6)
    if len(found) > 1:
        shown = ", ".join(map(repr, found[:5])) + (", ..." if len(found) > 5 else "")
        raise SessionError(f"cannot choose a session of {store.url}: it holds {shown}; pass session_id")
    return found[0] if found else None


def open_session(
    create: Callable[[str | None], S],
    where: Where,
    session_id: str | None,
    *,
    durability: Durability,
    on_conflict: OnOthers,
    exclusive: bool,
) -> S:
    """Open a session, or create one; see `Session.open`. `create` makes an empty session with an id."""
    if on_conflict not in ("raise", "merge"):
        raise ValueError(f"on_conflict is {on_conflict!r}; pass 'raise' or 'merge'")
    store = event_store(where, durability)
    try:
        session = create(stream_of(store, session_id))
        log = _filled(session, store, exclusive=exclusive)
    except BaseException:
        if store is not where:
            store.close()
        raise
    log.owns_store = store is not where
    if on_conflict == "merge":
        log.merges = True
        session._id_suffix = id_suffix(log.writer)
    return session


def _filled(session: Session, store: EventStore, *, exclusive: bool) -> CommitLog:
    """Load a new session from its stream, and have its changes stored there."""
    name = session.session_id
    lease = HeldLease(store, store.lease(name, uuid4().hex, LEASE)) if exclusive else None
    checkpoints = Checkpointing.of(store, name, session._rules)
    line, rules, head = Timeline(touched=Log()), session._rules, 0
    header: dict[str, Any] = {"origin_id": name, "counter": 0}
    with garbage_collection_paused():
        checkpoint = store.get_checkpoint(name)
        if checkpoint is not None:
            line, header, rules = checkpoints.load(checkpoint.data, f"the checkpoint at frame {checkpoint.number}")
            head = checkpoint.number
        log = CommitLog(store, name, checkpoints, head, frozenset(), lease=lease, header=header)
        reader = log.reader(rules, line, header["counter"], is_new=True)
        read = reader.apply(store.read(name, after=head))
    if checkpoint is not None and not read and store.head(name) < head:
        raise StorageDamaged(
            f"cannot open session {name!r} of {store.url}: it has a checkpoint after frame {head}, and ends at frame "
            f"{store.head(name)}: its end was cut off; restore the storage from a backup"
        )
    line = reader.line
    if read and line.seq:
        line.loaded = True
        line.forget_keyframes(line.lasting)
    session._take_over(reader.rules, line, {**log.header, "session_id": name, "counter": reader.counter})
    log.head, log.externals = read or head, line.externals
    log.known_slices = frozenset(reader.rules.specs)
    session._log = log
    return log


def copy_session(source: Session, where: Where, durability: Durability) -> None:
    """Store a copy of a session; see `Session.copy_to`."""
    with source.lock:
        rules, line, header = source._parts()
        line = line.copy()
    target = type(source).open(where, source.session_id, durability=durability, registry=rules.registry)
    try:
        log = target._log
        if log is None or log.head:
            raise SessionError(
                f"cannot copy session {source.session_id!r}: there is a session with that id already; delete it first"
            )
        with target.lock:
            target._rules, target.origin_id, target._counter = rules, header["origin_id"], header["counter"]
            log.start(target, line)
    finally:
        target.close()
