"""Leases and clocks that are set back: a holder that died does not keep others out until its clock has caught up."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.storage.servers import empty_location
from weakfs.storage import EventStore, LeaseLost, MemoryStorage, StorageEventStore, open_event_store
from weakfs.storage.folder import FolderEventStore

# The PostgreSQL of the tests does not sync.
pytestmark = pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")

# Two stores of one location, and a function that sets the clock of its engine back by some seconds.
Place = tuple[EventStore, EventStore, Callable[[float], None]]


def by_clock(opened: Callable[[Callable[[], float]], EventStore]) -> Place:
    now = [1_700_000_000.0]

    def set_back(seconds: float) -> None:
        now[0] -= seconds

    return opened(lambda: now[0]), opened(lambda: now[0]), set_back


def by_shift(location: str, shift: Callable[[float], None]) -> Place:
    """For an engine whose clock cannot be changed: prolonging a lease is equivalent to setting the clock back."""
    return open_event_store(location), open_event_store(location), shift


def in_sqlite(location: str) -> Place:
    def shift(seconds: float) -> None:
        with closing(sqlite3.connect(location.partition(":")[2])) as connection, connection:
            connection.execute("UPDATE streams SET expires = expires + ?", [seconds])

    return by_shift(location, shift)


def in_postgresql(location: str) -> Place:
    import psycopg

    address, _, schema = location.partition("&schema=")

    def shift(seconds: float) -> None:
        with psycopg.connect(address) as connection:
            statement = f"UPDATE {schema}.streams SET expires = expires + make_interval(secs => %s)"
            connection.execute(statement.encode(), [seconds])

    return by_shift(location, shift)


def in_redis(location: str) -> Place:
    import redis

    address, _, namespace = location.partition("?namespace=")

    def shift(seconds: float) -> None:
        with redis.Redis.from_url(address) as client:
            client.hincrbyfloat(f"{namespace}:{{s}}:head", "expires", seconds)

    return by_shift(location, shift)


@pytest.fixture(params=["keys", "folder", "sqlite", "postgresql", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "keys":
        storage = MemoryStorage()
        return by_clock(lambda clock: StorageEventStore(storage, clock=clock))
    if request.param == "folder":
        return by_clock(lambda clock: FolderEventStore(tmp_path / "store", clock=clock))
    location = empty_location(request.param, request, tmp_path)
    return {"sqlite": in_sqlite, "postgresql": in_postgresql, "redis": in_redis}[request.param](location)


def test_setting_the_clock_back_does_not_prolong_the_lease_of_a_dead_holder(place: Place) -> None:
    dead, other, set_clock_back = place
    old = dead.lease("s", "dead", 30)
    assert dead.append("s", 0, [b"a"], fencing=old.fencing) == 1
    with pytest.raises(LeaseLost):
        other.append("s", 1, [b"b"])
    set_clock_back(86_400)
    assert other.append("s", 1, [b"b"]) == 2
    new = other.lease("s", "other", 30)
    assert new.fencing == old.fencing + 1
    # It was alive after all: it learns that it lost the lease, and has changed nothing.
    with pytest.raises(LeaseLost):
        dead.append("s", 2, [b"c"], fencing=old.fencing)
    with pytest.raises(LeaseLost):
        dead.lease("s", "dead", 30)
    assert [frame.data for frame in other.read("s")] == [b"a", b"b"]
    other.close()
    dead.close()


def test_clocks_that_differ_by_seconds_leave_a_lease_in_force(place: Place) -> None:
    holder, other, set_clock_back = place
    lease = holder.lease("s", "holder", 30)
    set_clock_back(3)
    with pytest.raises(LeaseLost):
        other.append("s", 0, [b"a"])
    with pytest.raises(LeaseLost):
        other.lease("s", "other", 30)
    assert holder.lease("s", "holder", 30).fencing == lease.fencing
    assert holder.append("s", 0, [b"a"], fencing=lease.fencing) == 1
    other.close()
    holder.close()


def test_a_holder_renews_its_lease_under_a_new_number_after_the_clock_was_set_back(place: Place) -> None:
    holder, other, set_clock_back = place
    old = holder.lease("s", "holder", 30)
    set_clock_back(86_400)
    new = holder.lease("s", "holder", 30)
    assert new.fencing == old.fencing + 1
    assert holder.append("s", 0, [b"a"], fencing=new.fencing) == 1
    with pytest.raises(LeaseLost):
        other.append("s", 1, [b"b"])
    holder.release(new)
    assert other.append("s", 1, [b"b"]) == 2
    other.close()
    holder.close()


def test_a_lease_in_a_folder_whose_duration_is_unknown_lasts_until_its_end(tmp_path: Path) -> None:
    now = [1000.0]
    store = FolderEventStore(tmp_path, clock=lambda: now[0])
    store.lease("s", "one", 10)
    (file,) = tmp_path.rglob("lease")
    fields = json.loads(file.read_text())
    del fields["seconds"]
    file.write_text(json.dumps(fields))
    now[0] -= 100
    with pytest.raises(LeaseLost):
        store.append("s", 0, [b"a"])
    now[0] += 111
    assert store.append("s", 0, [b"a"]) == 1
    store.close()
