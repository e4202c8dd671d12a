"""The lease of an exclusive session is renewed while the session is idle, until it is closed."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from weakfs import InMemoryFilesystem, Session
from weakfs.session import SessionError
from weakfs.session.durable import open_session
from weakfs.session.durable.commits.lease_renewal import renewed
from weakfs.storage import AsyncMemoryStorage, EventStore, Lease, LeaseLost, MemoryStorage, OutcomeUnknown, StorageError
from weakfs.storage.steps import run
from weakfs.storage.streams import AsyncStorageEventStore, StorageEventStore

# How often a lease is taken or renewed before a test goes on.
ENOUGH = 4


@pytest.fixture
def brief_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make renewals frequent. Whether a lease expires before it is renewed does not matter to the tests."""
    monkeypatch.setattr(open_session, "LEASE", 0.06)


class CountedStore(StorageEventStore):
    """An event store in memory that counts how often a lease was taken."""

    def __init__(self, storage: MemoryStorage, lost: int = 0) -> None:
        super().__init__(storage)
        self.count, self.lost = 0, lost
        self.has_renewed = threading.Event()

    def lease(self, stream: str, owner: str, seconds: float) -> Lease:
        lease = super().lease(stream, owner, seconds)
        self.count += 1
        if self.count >= ENOUGH:
            self.has_renewed.set()
        elif self.count <= self.lost:
            raise OutcomeUnknown("the connection was lost")
        return lease


@pytest.fixture
def renewing_threads() -> Callable[[], list[threading.Thread]]:
    """Return a function that lists the threads for leases of this test: sessions of other tests may have some."""
    others = set(threading.enumerate())
    return lambda: [one for one in threading.enumerate() if one.name == "weakfs-lease" and one not in others]


@pytest.mark.usefixtures("brief_leases")
def test_an_idle_session_renews_its_lease_until_it_is_closed(
    renewing_threads: Callable[[], list[threading.Thread]],
) -> None:
    storage = MemoryStorage()
    store = CountedStore(storage, lost=2)
    session = Session.open(store, "s", exclusive=True)
    assert store.has_renewed.wait(60)
    session.close()
    count = store.count
    assert renewing_threads() == []
    # It was released, and is not taken again.
    assert StorageEventStore(storage).append("s", 0, [b"a"]) == 1
    assert store.count == count


@pytest.mark.usefixtures("brief_leases")
def test_a_session_that_is_dropped_is_not_kept_by_its_lease(
    renewing_threads: Callable[[], list[threading.Thread]],
) -> None:
    store = CountedStore(MemoryStorage())
    session: Session | None = Session.open(store, "s", exclusive=True)
    (thread,) = renewing_threads()
    del session
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.usefixtures("brief_leases")
async def test_an_awaited_session_renews_its_lease_until_it_is_closed() -> None:
    has_renewed = asyncio.Event()

    class Counted(AsyncStorageEventStore):
        count = 0

        async def lease(self, stream: str, owner: str, seconds: float) -> Lease:
            lease = await super().lease(stream, owner, seconds)
            self.count += 1
            if self.count >= ENOUGH:
                has_renewed.set()
            return lease

    storage = AsyncMemoryStorage()
    store = Counted(storage)
    session = await Session.aopen(store, "s", exclusive=True)
    await asyncio.wait_for(has_renewed.wait(), 60)
    await session.aclose()
    count = store.count
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert await AsyncStorageEventStore(storage).append("s", 0, [b"a"]) == 1
    assert store.count == count


@pytest.fixture
def clocked(
    renewing_threads: Callable[[], list[threading.Thread]],
) -> Iterator[tuple[Session, EventStore, list[float]]]:
    """Return an exclusive session, a store that another process has opened, and the time that both use."""
    now, storage = [1_000_000.0], MemoryStorage()
    store = StorageEventStore(storage, clock=lambda: now[0])
    session = Session.open(store, "s", exclusive=True)
    InMemoryFilesystem(session).write("/a", "")
    yield session, StorageEventStore(storage, clock=lambda: now[0]), now
    # Closing it tells that it was deleted or changed by others.
    with suppress(StorageError, SessionError):
        session.close()
    assert renewing_threads() == []


def renew(session: Session) -> bool:
    log: Any = session._log
    return run(renewed(log), log.store)


def test_nobody_else_changes_an_idle_session(clocked: tuple[Session, EventStore, list[float]]) -> None:
    session, other, now = clocked
    for _ in range(10):
        now[0] += 20
        assert renew(session)
        with pytest.raises(LeaseLost):
            other.append("s", 1, [b"a"])
    InMemoryFilesystem(session).write("/b", "")


def test_a_holder_that_was_suspended_leaves_the_lease_to_another(
    clocked: tuple[Session, EventStore, list[float]],
) -> None:
    session, other, now = clocked
    now[0] += 31
    lease = other.lease("s", "another", 30)
    assert not renew(session)
    with pytest.raises(LeaseLost):
        InMemoryFilesystem(session).write("/b", "")
    assert other.append("s", 1, [b"a"], fencing=lease.fencing) == 2
    with suppress(StorageError, SessionError):
        session.close()
    # The lease of the other one was not released.
    assert other.lease("s", "another", 30).fencing == lease.fencing
    with pytest.raises(LeaseLost):
        other.append("s", 2, [b"a"])


def test_the_lease_of_a_deleted_session_is_not_renewed(clocked: tuple[Session, EventStore, list[float]]) -> None:
    session, other, _ = clocked
    assert other.delete("s")
    assert not renew(session)
    assert other.streams() == []
