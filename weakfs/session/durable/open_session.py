"""Opening a session in storage: reading it, or creating it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Literal, TypeVar
from uuid import uuid4

from attrs import evolve

from weakfs.class_decorators import frozen
from weakfs.platforms import garbage_collection_paused
from weakfs.session.codec.expansion_limit import FACTOR, ExpansionExceeded, check_factor
from weakfs.session.durable.checkpoints.checkpoints import Checkpointing
from weakfs.session.durable.commits.append import frames_missing
from weakfs.session.durable.commits.commit_log import CommitLog
from weakfs.session.durable.commits.log_state import id_suffix
from weakfs.session.durable.commits.lost_copies import content_from_frames
from weakfs.session.durable.commits.refresh import ATTEMPTS
from weakfs.session.durable.commits.reset import start
from weakfs.session.durable.frames.reader import FrameReader
from weakfs.session.durable.held_lease import HeldLease, given_up, taken
from weakfs.session.durable.replacement_workplaces import remove_left_at
from weakfs.session.errors import SessionError, SessionFileError
from weakfs.session.history.timeline import Timeline
from weakfs.session.slices.log import Log
from weakfs.session.state import SessionState
from weakfs.storage.engines.urls import folder_url, split_folder
from weakfs.storage.errors import StorageDamaged
from weakfs.storage.event_store import Checkpoint, EventStore, Frame
from weakfs.storage.event_store_operations import GetCheckpoint, Head, ListStreams, Read, TakeLease
from weakfs.storage.locations import open_event_store, url_of
from weakfs.storage.steps import Steps, run, supplied
from weakfs.storage.storage import Storage
from weakfs.storage.stream_handle import StreamHandle

S = TypeVar("S", bound=SessionState)

Durability = Literal["process", "power", "manual"]
OnOthers = Literal["raise", "merge"]
# A folder, a URL, or a `Storage` or `EventStore` that is open.
Where = str | os.PathLike[str] | Storage | EventStore
# How long a lease lasts, in seconds.
LEASE = 30.0


def is_awaited(where: object) -> bool:
    """Return whether the methods of a storage or an event store are `async`."""
    return iscoroutinefunction(getattr(where, "head", None) or getattr(where, "get", None))


@frozen
class Options:
    """How a session is opened; see `Session.open`."""

    durability: Durability = "process"
    on_conflict: OnOthers = "raise"
    exclusive: bool = False
    max_expansion: float | None = FACTOR

    def __attrs_post_init__(self) -> None:
        if self.durability not in ("process", "power", "manual"):
            raise ValueError(f"durability is {self.durability!r}; pass 'process', 'power' or 'manual'")
        if self.on_conflict not in ("raise", "merge"):
            raise ValueError(f"on_conflict is {self.on_conflict!r}; pass 'raise' or 'merge'")
        check_factor(self.max_expansion)


def event_store(where: Where, durability: Durability) -> EventStore:
    """Return the event streams in a folder, at a URL, or in a `Storage`.

    A `Storage` and a server are as durable as they are configured to be, whatever `durability` says.
    """
    if is_awaited(where):
        raise TypeError(f"cannot open {where!r:.60}: its methods are 'async'; use Session.aopen")
    if isinstance(where, EventStore):
        return where
    if not isinstance(where, str | os.PathLike):
        if not isinstance(where, Storage):
            raise TypeError(f"cannot open {where!r:.60}: it is not a storage; pass a folder, a URL or a storage")
        return open_event_store(where)
    url = url_of(where)
    if url.startswith("folder:"):
        path, stated = split_folder(url)
        url = folder_url(path, stated or durability)
    elif url.startswith("sqlite:") and "?durability=" not in url:
        url = f"{url}?durability={durability}"
    remove_left_at(url)
    return open_event_store(url)


def open_session(
    create: Callable[[str | None], S],
    where: Where,
    session_id: str | None,
    options: Options,
) -> S:
    """Open a session, or create one; see `Session.open`. `create` makes an empty session with an id."""
    store = event_store(where, options.durability)
    try:
        with garbage_collection_paused():
            session = run(opened(create, store, session_id, options), store)
    except BaseException:
        if store is not where:
            store.close()
        raise
    log = complete(session, options, owns_store=store is not where)
    log.is_brief = is_brief(url_of(where) if isinstance(where, str | os.PathLike) else store.url, options.durability)
    if log.lease is not None:
        # Imported only when needed, as few sessions are exclusive.
        from weakfs.session.durable.commits.lease_renewal import renew_in_thread

        log.lease.stop_renewal = renew_in_thread(log, log.lease.lease.seconds)
    return session


def is_brief(url: str, durability: Durability) -> bool:
    """Return whether every operation on a store is so short that an event loop need not await it.

    Operations that wait for a disk or another process are not short; SQLite waits for the transactions of others.
    """
    if url.startswith("folder:"):
        return "power" not in (durability, split_folder(url)[1])
    return url.startswith("memory:")


def complete(session: SessionState, options: Options, *, owns_store: bool) -> CommitLog:
    """Apply the options to a session that was just opened, and return its commit log."""
    log = session._log
    assert log is not None
    log.owns_store, log.flushed = owns_store, log.head
    if options.on_conflict == "merge":
        log.merges = True
        session._id_suffix = id_suffix(log.writer)
    return log


def opened(create: Callable[[str | None], S], store: EventStore, session_id: str | None, options: Options) -> Steps[S]:
    """Read a session from its stream, and have its changes stored there.

    Contents are later read from `store`.
    """
    name = yield from _stream_of(store.url, session_id)
    session = create(name)
    if not options.exclusive:
        return (yield from _opened(session, store, options, None))
    take = TakeLease(session.session_id, uuid4().hex, LEASE)
    try:
        return (yield from _opened(session, store, options, HeldLease(store, (yield from taken(take)))))
    except GeneratorExit:
        raise
    except BaseException:
        yield from given_up(take)
        raise


def _opened(session: S, store: EventStore, options: Options, lease: HeldLease | None) -> Steps[S]:
    name = session.session_id
    log, reader, read = yield from _read_stored(session, store, options.max_expansion)
    line = reader.line
    if read and line.seq:
        line.past = evolve(line.past, loaded=line.seq, slices=frozenset(reader.rules.specs))
        line.forget_keyframes(line.past.lasting)
    session._set_parts(reader.rules, line, {**log.header, "session_id": name, "counter": reader.counter})
    log.head, log.externals, log.lease = read or log.head, line.externals, lease
    log.known_slices = frozenset(reader.rules.specs)
    session._log = log
    return session


def stream_of(store: EventStore, session_id: str | None) -> str | None:
    """Return the stream of a session, by default the only one; `None` if there is none."""
    return run(_stream_of(store.url, session_id), store)


def _stream_of(url: str, session_id: str | None) -> Steps[str | None]:
    if session_id == "":
        raise ValueError("session_id is ''; pass text, or None for the only session")
    if session_id is not None:
        return session_id
    found: list[str] = yield ListStreams(6)
    if len(found) > 1:
        shown = ", ".join(map(repr, found[:5])) + (", ..." if len(found) > 5 else "")
        raise SessionError(f"cannot choose a session of {url}: it holds {shown}; pass session_id")
    # A store that treats handles as names may return a handle.
    return str(found[0]) if found else None


def _read_stored(
    session: SessionState, store: EventStore, max_expansion: float | None
) -> Steps[tuple[CommitLog, FrameReader, int]]:
    """Read the newest checkpoint and the frames that follow it; see `_read`.

    Read them again if another process compacts or deletes the session meanwhile.
    """
    left = ATTEMPTS
    while True:
        stream = StreamHandle(session.session_id)
        checkpoint: Checkpoint | None = yield GetCheckpoint(stream)
        frames: Iterable[Frame] = yield Read(stream, 0 if checkpoint is None else checkpoint.number)
        try:
            reading = partial(_read, session, store, stream, checkpoint, frames, max_expansion)
            log, reader, read = yield from supplied(reading)
        except ExpansionExceeded:
            raise
        except SessionFileError:
            # A compaction has dropped what these refer to, and stored what replaces them; or the session is damaged.
            left -= 1
            if not left:
                raise
        else:
            start = 0 if checkpoint is None else checkpoint.number
            if read or (ends := (yield Head(stream))) == start:
                return log, reader, read
            # Others may have appended since.
            if ends > start and list((yield Read(stream, start, 1))):
                return log, reader, read
            # The stream was deleted meanwhile, or is damaged.
            left -= 1
            if not left:
                raise _cut_off(stream, store.url, start, ends)


def _cut_off(stream: str, url: str, checkpoint: int, ends: int) -> StorageDamaged:
    if ends > checkpoint:
        return frames_missing(stream, url, checkpoint, ends)
    return StorageDamaged(
        f"cannot open session {stream!r} of {url}: it has a checkpoint after frame {checkpoint}, but ends at frame "
        f"{ends}: its end was cut off; restore the storage from a backup"
    )


def _read(
    session: SessionState,
    store: EventStore,
    stream: StreamHandle,
    checkpoint: Checkpoint | None,
    frames: Iterable[Frame],
    max_expansion: float | None,
) -> tuple[CommitLog, FrameReader, int]:
    """Read a checkpoint and the frames that follow it.

    Also return the number of the last frame, 0 if there are none.
    """
    rules = session._rules
    lost = partial(content_from_frames, max_expansion=max_expansion)
    checkpoints = Checkpointing.of(store, stream, rules, lost, max_expansion)
    line, head = Timeline(touched=Log()), 0
    header: dict[str, Any] = {"origin_id": session.session_id, "counter": 0}
    with garbage_collection_paused():
        if checkpoint is not None:
            line, header, rules = checkpoints.load(checkpoint.data, f"the checkpoint at frame {checkpoint.number}")
            head = checkpoint.number
        log = CommitLog(store, stream, checkpoints, head, frozenset(), header=header, has_unread=head > 0)
        reader = log.reader(rules, line, header["counter"], is_new=True)
        return log, reader, reader.apply(frames, head)


def copy_session(source: SessionState, target: SessionState) -> None:
    """Store a copy of a session as another one, which was just opened; see `Session.copy_to`."""
    rules, line, header = source._parts()
    log = target._log
    if log is None or log.head:
        raise SessionError(
            f"cannot copy session {source.session_id!r}: a session with that id already exists; delete it first"
        )
    with target.lock:
        target._rules, target.origin_id = rules, header["origin_id"]
        target._count_from(header["counter"])
        start(log, target, line)
