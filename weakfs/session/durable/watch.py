"""Watching a session: its records as they are made, including by other processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from time import monotonic

from weakfs.session.errors import SessionClosed, SessionError
from weakfs.session.slices.events import Record
from weakfs.session.state import SessionState
from weakfs.storage.adapters import ThreadedEventStore
from weakfs.storage.errors import StorageError

# How long each wait for the storage may take, in seconds. Changes by this process are noticed only after a wait.
STEP = 1.0


def watch(session: SessionState, refresh: Callable[[], object], timeout: float | None) -> Iterator[Record]:
    """Yield the records of a session, which `refresh` brings up to date, as they are made; see `Session.watch`."""
    _check_stored(session)
    return _records(session, refresh, timeout, session.seq)


def awatch(
    session: SessionState, refresh: Callable[[], Awaitable[object]], timeout: float | None
) -> AsyncIterator[Record]:
    """Yield the records of a session as `watch` does; see `Session.awatch`."""
    _check_stored(session)
    return _arecords(session, refresh, timeout, session.seq)


def _check_stored(session: SessionState) -> None:
    if session._log is None:
        raise SessionError(
            f"cannot watch session {session.session_id!r}: it is in memory, and only this process changes it; "
            f"subscribe to it instead"
        )


def _records(session: SessionState, refresh: Callable[[], object], timeout: float | None, seq: int) -> Iterator[Record]:
    log = session._log
    assert log is not None
    last = monotonic()
    try:
        while not log.is_closed:
            refresh()
            for record in session.records.since(seq):
                seq, last = record.seq, monotonic()
                yield record
            left = STEP if timeout is None else min(STEP, last + timeout - monotonic())
            if left <= 0:
                return
            log.store.wait(log.stream, log.head, left)
    except (SessionClosed, StorageError):
        if session._closed is None:
            raise
    if session._closed is not None:
        # Recorded before the session was closed.
        yield from session.records.since(seq)


async def _arecords(
    session: SessionState, refresh: Callable[[], Awaitable[object]], timeout: float | None, seq: int
) -> AsyncIterator[Record]:
    log, queue = session._log, session._queue
    assert log is not None
    threads = ThreadedEventStore(log.store, threads=1) if queue is None else None
    store = threads if queue is None else queue.store
    assert store is not None
    last = monotonic()
    try:
        while not log.is_closed:
            await refresh()
            for record in session.records.since(seq):
                seq, last = record.seq, monotonic()
                yield record
            left = STEP if timeout is None else min(STEP, last + timeout - monotonic())
            if left <= 0:
                return
            await store.wait(log.stream, log.head, left)
    except (SessionClosed, StorageError):
        if session._closed is None:
            raise
    finally:
        if threads is not None:
            threads.end_threads()
    if session._closed is not None:
        # Recorded before the session was closed.
        for record in session.records.since(seq):
            yield record
