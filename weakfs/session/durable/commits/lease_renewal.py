"""Renewing the lease of an exclusive session while nothing uses it: a model may think longer than a lease lasts."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from weakref import ref

from weakfs.session.durable.commits.log_state import LogState
from weakfs.storage.errors import LeaseLost, StorageError
from weakfs.storage.event_store import AsyncEventStore
from weakfs.storage.event_store_operations import Head, TakeLease
from weakfs.storage.steps import Steps, arun, run

# A lease is renewed several times before it would expire, so that one renewal may fail.
TIMES = 3


def renewed(log: LogState) -> Steps[bool]:
    """Renew the lease of a session. Return false if it cannot be renewed any more."""
    held = log.lease
    if held is None:
        return False
    lease, now = held.lease, held.clock()
    try:
        if (yield Head(lease.stream)) < log.head:
            # The stream was deleted. Leasing it would create it again, or lock out the writers of a new one.
            return False
        held.renew((yield TakeLease(lease.stream, lease.owner, lease.seconds)), now)
    except LeaseLost:
        return False
    except StorageError:
        # The next renewal, or the next change, tries again.
        return True
    return True


def renew_in_thread(log: LogState, seconds: float) -> Callable[[], None]:
    """Keep renewing the lease of a session, which lasts `seconds`; return a function that stops the renewal."""
    is_over = Event()
    thread = Thread(target=_renew, args=(ref(log), seconds / TIMES, is_over), name="weakfs-lease", daemon=True)

    def stop() -> None:
        is_over.set()
        # A renewal that is under way would take the lease again after its release.
        thread.join()

    thread.start()
    return stop


def _renew(session: ref[LogState], pause: float, is_over: Event) -> None:
    while not is_over.wait(pause):
        # A session that is no longer used must not keep its lease forever.
        log = session()
        if log is None or not run(renewed(log), log.store):
            return
        del log


async def arenew(session: ref[LogState], store: AsyncEventStore, seconds: float) -> None:
    """Renew the lease of a session as `renew_in_thread` does, until this is cancelled."""
    import asyncio

    while True:
        await asyncio.sleep(seconds / TIMES)
        log = session()
        if log is None or not await arun(renewed(log), store):
            return
        del log
