"""The commit queue: commits that an event loop awaits, in order, several in one append.

While one append is under way, other calls end; their commits wait here, and the next append stores all of them. Each
gets its own outcome: if one conflicts with those before it, only that one is refused. A commit that is cancelled while
it waits never happens. If it is cancelled during its append, the append is cancelled, the others in it are sent again
without it, and frames that the storage may have received nevertheless are rolled back when they turn up, like those of
every change whose outcome is unknown. If the commit has work outside the session, its steps find out whether it was
stored before that work is kept or undone: a process that is killed in between can still be settled.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from contextvars import Context
from weakref import ref

from attrs import field

from weakfs.class_decorators import define
from weakfs.session.current_timeline import Transaction
from weakfs.session.durable.commits.log_state import LogState
from weakfs.session.durable.commits.pending_steps import PendingSteps
from weakfs.session.durable.commits.refresh import retract, settled
from weakfs.session.durable.held_lease import HeldLease
from weakfs.session.errors import RollbackIncomplete, SessionConflict, SessionError
from weakfs.session.stored_state import SessionTrunk
from weakfs.shield import ended
from weakfs.storage.errors import StorageError
from weakfs.storage.event_store import AsyncEventStore
from weakfs.storage.event_store_operations import Operation
from weakfs.storage.steps import Steps

# How many commits one append stores at most.
GROUP = 128

logger = logging.getLogger("weakfs.session")


@define(eq=False)
class Entry:
    """A commit that is waiting or in progress: of a transaction, or of other steps, which share no append."""

    done: asyncio.Future[None]
    own: Transaction | None = None
    steps: Callable[[], Steps[None]] | None = None
    error: Exception | None = None
    is_withdrawn: bool = False
    # Whether a commit in the same append failed, perhaps because of this one.
    is_suspect: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether the commit cannot share an append: work outside the session belongs to one commit."""
        return self.own is None or bool(self.own.journals) or self.is_suspect


@define(eq=False)
class CommitQueue:
    """The commits of one session. Methods are called on its event loop, except `keep` and `close_soon`."""

    session: SessionTrunk
    log: LogState
    store: AsyncEventStore
    # Commits transactions in one append, and returns the errors of those that cannot be merged.
    commit_group: Callable[[Sequence[Transaction]], Steps[dict[Transaction, Exception]]]
    loop: asyncio.AbstractEventLoop = field(factory=asyncio.get_running_loop)
    _waiting: deque[Entry] = field(factory=deque[Entry])
    _in_flight: list[Entry] = field(factory=list[Entry])
    _pending: PendingSteps[None] | None = None
    _running: asyncio.Future[object] | None = None
    _worker: asyncio.Task[None] | None = None
    _closing: asyncio.Task[None] | None = None
    _renewal: asyncio.Task[None] | None = None
    # Whether the loop is ending and cancelling everything.
    _is_closing: bool = False

    @property
    def is_here(self) -> bool:
        """Whether the running code is on the event loop of the session."""
        return asyncio._get_running_loop() is self.loop

    async def commit(self, own: Transaction) -> None:
        """Commit a transaction; sets its `is_stored` if that succeeds, even if this is cancelled."""
        await self._settled(Entry(self.loop.create_future(), own))

    async def record(self, own: Transaction) -> None:
        """Commit records of what has already happened; if this is cancelled, they are committed in the background."""
        entry = Entry(self.loop.create_future(), own)
        self._add(entry)
        try:
            await asyncio.shield(entry.done)
        except asyncio.CancelledError:
            entry.done.add_done_callback(_log_lost)
            raise

    async def perform(self, steps: Callable[[], Steps[None]]) -> None:
        """Perform other steps that may change the session."""
        await self._settled(Entry(self.loop.create_future(), steps=steps))

    def keep(self, own: Transaction) -> None:
        """Commit the records of a transaction that was rolled back, in the background.

        This may be called from any thread.
        """
        if self.is_here:
            self._keep(own)
        else:
            self.loop.call_soon_threadsafe(self._keep, own)

    def _keep(self, own: Transaction) -> None:
        entry = Entry(self.loop.create_future(), own)
        entry.done.add_done_callback(_log_lost)
        self._add(entry)

    async def flush(self) -> None:
        """Wait until the queue is empty and everything is as durable as the storage can make it."""
        while self._worker is not None:
            await asyncio.wait([self._worker])
        log = self.log
        await asyncio.to_thread(log.checkpoints.wait)
        await self.store.flush()
        if log.flushed != log.head:
            log.check_end(await self.store.head(log.stream))

    async def close(self) -> None:
        """Make everything durable, and release the lease and the storage."""
        log = self.log
        if log.is_closed:
            return
        log.is_closed = True
        async with AsyncExitStack() as stack:
            if log.owns_store:
                # The second client.
                stack.push_async_callback(asyncio.to_thread, log.store.close)
                stack.push_async_callback(self.store.close)
            if log.lease is not None:
                stack.push_async_callback(self._release, log.lease)
            with self.session.lock:
                retract(log, self.session)
            if log.has_uncertain:
                await self.perform(lambda: settled(log, self.session))
            await self.flush()

    def renew_lease(self, seconds: float) -> None:
        """Renew the lease of the session, which lasts `seconds`, until the session is closed."""
        from weakfs.session.durable.commits.lease_renewal import arenew

        renewing = arenew(ref(self.log), self.store, seconds)
        # The task runs in a new context, in which no transaction of a call is active.
        self._renewal = self.loop.create_task(renewing, name="weakfs-lease", context=Context())

    async def _release(self, held: HeldLease) -> None:
        if self._renewal is not None:
            # A renewal that is under way would take the lease again after its release.
            self._renewal.cancel()
            await asyncio.wait([self._renewal])
        await self.store.release(held.lease)

    def close_soon(self) -> None:
        """Close in the background, on the event loop, where the client has to be closed.

        This may be called from any thread.
        """
        self.loop.call_soon_threadsafe(self._close_soon)

    def _close_soon(self) -> None:
        self._closing = self.loop.create_task(self.close(), context=Context())

    async def _settled(self, entry: Entry) -> None:
        if not self.is_here:
            raise RuntimeError(
                f"session {self.session.session_id!r} was opened on another event loop; open it with aopen in this one"
            )
        self._add(entry)
        try:
            await asyncio.shield(entry.done)
        except asyncio.CancelledError:
            self._withdraw(entry)
            # Waits until the engine has given up, after which nothing takes effect. Cancelling again changes nothing.
            await ended(entry.done)
            error = None if entry.done.cancelled() else entry.done.exception()
            if isinstance(error, RollbackIncomplete):
                raise error from None
            raise

    def _add(self, entry: Entry) -> None:
        self._waiting.append(entry)
        if self._worker is None:
            # The task runs in a new context, in which no transaction of a call is active.
            self._worker = self.loop.create_task(self._work(), name="weakfs-commits", context=Context())

    def _withdraw(self, entry: Entry) -> None:
        entry.is_withdrawn = True
        if entry in self._waiting:
            self._waiting.remove(entry)
            entry.done.cancel()
        elif entry in self._in_flight and self._running is not None:
            self._running.cancel()

    async def _work(self) -> None:
        try:
            while self._waiting and not self._is_closing:
                self._in_flight = [self._waiting.popleft()]
                while self._waiting and len(self._in_flight) < GROUP:
                    if self._in_flight[0].is_alone or self._waiting[0].is_alone:
                        break
                    self._in_flight.append(self._waiting.popleft())
                await self._commit_group(self._in_flight)
        finally:
            for entry in self._waiting:
                entry.done.cancel()
            self._waiting.clear()
            self._worker, self._in_flight = None, []

    async def _commit_group(self, group: list[Entry]) -> None:
        """Commit a group, and settle its entries or put them back."""
        session, log, is_cancelled = self.session, self.log, False
        pending = PendingSteps(self._steps(group))
        pending.on_completed = lambda: self.loop.call_soon_threadsafe(self._wake, pending)
        with session.lock:
            log.pending_steps, self._pending = pending, pending
            pending.start()
        try:
            while (operation := pending.operation) is not None:
                reply, error = None, None
                try:
                    if not is_cancelled and any(entry.is_withdrawn for entry in group):
                        raise asyncio.CancelledError
                    reply = await self._awaited(operation)
                except BaseException as failure:
                    error = failure
                    # Only once: the steps then find out whether the commit was stored.
                    is_cancelled |= isinstance(failure, asyncio.CancelledError)
                with session.lock:
                    # Unless another thread has completed it in the meantime.
                    if pending.operation is operation:
                        pending.advance(reply, error)
        finally:
            with session.lock:
                if log.pending_steps is pending:
                    log.pending_steps = None
        self._settle(group, pending.error)
        session._notify()

    async def _awaited(self, operation: Operation) -> object:
        """Await an operation, which a withdrawn commit or a closing loop cancels."""
        self._running = running = asyncio.ensure_future(operation.arun(self.store))
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            self._is_closing = True
            while not running.done():
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([running])
        return running.result()

    def _wake(self, pending: PendingSteps[None]) -> None:
        if self._pending is pending and self._running is not None:
            self._running.cancel()

    def _steps(self, group: list[Entry]) -> Steps[None]:
        if group[0].steps is not None:
            yield from group[0].steps()
        else:
            transactions = {entry.own: entry for entry in group if entry.own is not None}
            failed = yield from self.commit_group(list(transactions))
            for transaction, entry in transactions.items():
                entry.error = failed.get(transaction)
                transaction.is_stored = entry.error is None

    def _settle(self, group: list[Entry], error: BaseException | None) -> None:
        if error is not None and (self._is_closing or any(entry.is_withdrawn for entry in group)):
            for entry in group:
                if isinstance(error, RollbackIncomplete):
                    entry.done.set_exception(error)
                elif entry.is_withdrawn or self._is_closing:
                    entry.done.cancel()
            # The others begin again.
            self._waiting.extendleft(entry for entry in reversed(group) if not entry.done.done())
            self._settle_uncertain()
            return
        if len(group) > 1 and error is not None and not isinstance(error, StorageError):
            # One of the commits cannot be written, for example because it needs dropped contents: each is tried again
            # alone.
            for entry in group:
                entry.is_suspect = True
            self._waiting.extendleft(reversed(group))
            return
        for entry in group:
            failure = error or entry.error
            if failure is None:
                entry.done.set_result(None)
            else:
                entry.done.set_exception(failure)

    def _settle_uncertain(self) -> None:
        """Undo cancelled changes that were stored nevertheless, before any other commit: other sessions see them."""
        log = self.log
        if log.is_closed or self._is_closing or not log.has_uncertain:
            return
        entry = Entry(self.loop.create_future(), steps=lambda: settled(log, self.session))
        entry.done.add_done_callback(_log_unsettled)
        self._waiting.appendleft(entry)


def _log_lost(done: asyncio.Future[None]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        if not isinstance(error, (StorageError, SessionError)):
            raise error
        # The state is what it was before; only the records of the failed transaction are lost.
        logger.warning("the records of a failed transaction could not be stored: %s", error)


def _log_unsettled(done: asyncio.Future[None]) -> None:
    if not done.cancelled() and (error := done.exception()) is not None:
        if not isinstance(error, (StorageError, SessionConflict)):
            raise error
        # The next change tries again.
        logger.warning("a cancelled change could not be settled yet: %s", error)
