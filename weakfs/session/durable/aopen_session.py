"""Opening a session on an event loop, which then awaits its commits with the engine's own client."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from weakfs.session.durable.commits.commit_queue import CommitQueue
from weakfs.session.durable.commits.pending_steps import PendingSteps
from weakfs.session.durable.commits.sync_over_async import LoopStore, OnLoop
from weakfs.session.durable.open_session import (
    Durability,
    Options,
    Where,
    complete,
    event_store,
    is_awaited,
    is_brief,
    open_session,
    opened,
)
from weakfs.shield import ended, run_in_thread, shielded
from weakfs.storage.adapters import SyncEventStore, ThreadedEventStore
from weakfs.storage.event_store import AsyncEventStore, EventStore
from weakfs.storage.locations import aopen_event_store, open_event_store, url_of
from weakfs.storage.steps import Steps
from weakfs.storage.storage import AsyncStorage

if TYPE_CHECKING:
    from weakfs.session.transactions.commit_or_rollback import Transactions

T = TypeVar("T")
S = TypeVar("S", bound="Transactions")

AsyncWhere = Where | AsyncStorage | AsyncEventStore


class _Clients(NamedTuple):
    # The client for the event loop, and the store for everything else.
    awaited: AsyncEventStore
    store: EventStore
    on_loop: OnLoop | None = None


async def aopen_session(
    create: Callable[[str | None], S],
    where: AsyncWhere,
    session_id: str | None,
    options: Options,
) -> S:
    """Open a session, or create one; see `Session.aopen`. `create` makes an empty session with an id.

    This may be cancelled only once, and may ignore the cancellation, so the canceller must close the session.
    """
    clients = await _clients(where, options.durability)
    if clients is None:
        return await _complete(partial(open_session, create, cast(Where, where), session_id, options))
    awaited, store, on_loop = clients
    is_own = isinstance(where, str | os.PathLike)
    try:
        session = await _performed(opened(create, store, session_id, options), awaited)
    except BaseException:
        if is_own:
            await shielded(asyncio.ensure_future(awaited.close()))
        raise
    log = complete(session, options, owns_store=is_own)
    log.is_awaited, log.is_brief = True, False
    session._queue = queue = CommitQueue(session, log, awaited, session._commit_group)
    if log.lease is not None:
        queue.renew_lease(log.lease.lease.seconds)
    if on_loop is not None:
        on_loop.lock = session.lock
    return session


async def _clients(where: AsyncWhere, durability: Durability) -> _Clients | None:
    """Return the clients of a storage; `None` if its operations are too short to be worth awaiting."""
    if is_awaited(where):
        has_streams = hasattr(where, "append")
        awaited = cast(AsyncEventStore, where) if has_streams else await aopen_event_store(cast(AsyncStorage, where))
        on_loop = OnLoop(awaited.url, asyncio.get_running_loop())
        return _Clients(awaited, LoopStore(awaited.url, partial(SyncEventStore, awaited, run=on_loop)), on_loop)
    if not isinstance(where, str | os.PathLike):
        store = event_store(cast(Where, where), durability)
        if is_brief(store.url, durability):
            return None
        return _Clients(ThreadedEventStore(store), LoopStore(store.url, lambda: store))
    url = url_of(where)
    if is_brief(url, durability):
        return None
    if url.startswith(("folder:", "sqlite:")):
        store = await _complete(partial(event_store, where, durability))
        return _Clients(ThreadedEventStore(store), store)
    awaited = await aopen_event_store(url)
    return _Clients(awaited, LoopStore(awaited.url, partial(open_event_store, url)))


async def _performed(steps: Steps[T], awaited: AsyncEventStore) -> T:
    """Await the operations of steps that nothing else can see before they end.

    The work between them runs in threads. A cancellation is raised at the operation that is under way, or at the next
    one.
    """
    pending = PendingSteps(steps)
    advance: Callable[[], None] = pending.start
    while True:
        error: BaseException | None = await ended(run_in_thread(advance))
        operation = pending.operation
        if operation is None:
            break
        reply = None
        if error is None:
            try:
                reply = await operation.arun(awaited)
            except BaseException as failure:
                error = failure
        advance = partial(pending.advance, reply, error)
    if pending.error is not None:
        raise pending.error
    return cast(T, pending.result)


async def _complete(work: Callable[[], T]) -> T:
    """Run a function in a thread. A cancellation is ignored, as what the function opened has to be closed."""
    running = run_in_thread(work)
    await ended(running)
    return running.result()
