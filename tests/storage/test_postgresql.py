"""Storage in PostgreSQL: the suites over a real server, restarts, lost connections, and error messages."""

from __future__ import annotations

import asyncio
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from importlib import import_module
from typing import Any

import pytest

from tests.storage import servers
from tests.storage.servers import Server
from tests.storage.suites import AsyncEventStoreByUrl, AsyncStorageByUrl, EventStoreByUrl, Located, StorageByUrl
from weakfs import InMemoryFilesystem, Session, storage
from weakfs.storage import StorageError

psycopg = pytest.importorskip("psycopg")

# The server of the tests does not sync.
pytestmark = pytest.mark.filterwarnings("ignore::weakfs.storage.DurabilityWarning")


class OnServer(Located):
    @pytest.fixture(autouse=True)
    def place(self, postgresql_server: Server) -> None:
        self.location = postgresql_server.url
        with psycopg.connect(self.location) as connection:
            (is_there,) = connection.execute("SELECT to_regclass('weakfs.checkpoints') IS NOT NULL").fetchone()
            for table in ("items", "streams", "frames", "contents", "checkpoints") if is_there else ():
                connection.execute(f"DELETE FROM weakfs.{table}")


# With and without `async` the engine is the same code over two clients: a sample has each client and each part once.
@pytest.mark.exhaustive
class TestPostgresStorage(OnServer, StorageByUrl):
    pass


class TestAsyncPostgresStorage(OnServer, AsyncStorageByUrl):
    pass


class TestPostgresEventStore(OnServer, EventStoreByUrl):
    pass


@pytest.mark.exhaustive
class TestAsyncPostgresEventStore(OnServer, AsyncEventStoreByUrl):
    pass


def test_opening_a_server_that_does_not_sync_issues_a_warning(postgresql_server: Server) -> None:
    with pytest.warns(storage.DurabilityWarning, match="may lose acknowledged changes .*: fsync off; turn on fsync"):
        storage.open(postgresql_server.url).close()


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_crash", [True, False])
def test_a_server_that_syncs_keeps_everything(is_crash: bool) -> None:
    with servers.postgresql(fsync=True) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        store = storage.open_event_store(server.url)
        for number in range(50):
            store.append("s", number, [b"%d" % number])
        store.close()
        server.restart(crash=is_crash)
        store = storage.open_event_store(server.url)
        assert [frame.data for frame in store.read("s")] == [b"%d" % number for number in range(50)]
        store.close()


def test_schemas_are_separate(postgresql_server: Server) -> None:
    one, two = (storage.open(f"{postgresql_server.url}&schema={name}") for name in ("one", "two"))
    one.set("a", b"1")
    assert two.get("a") is None
    one.clear()
    one.close()
    two.close()
    with pytest.raises(ValueError, match="invalid schema 'a b'"):
        storage.open(f"{postgresql_server.url}&schema=a%20b")


def test_tables_of_a_newer_version_are_refused(postgresql_server: Server) -> None:
    url = f"{postgresql_server.url}&schema=newer"
    storage.open(url).close()
    with psycopg.connect(postgresql_server.url) as connection:
        connection.execute("INSERT INTO newer.format VALUES (2) ON CONFLICT DO NOTHING")
    with pytest.raises(StorageError, match="version 2, but this weakfs reads only up to version 1; upgrade"):
        storage.open(url)


def test_tables_of_an_earlier_version_are_completed_beside_readers(postgresql_server: Server) -> None:
    """Whoever completes them must hold the lock of one table at a time: a reader may use them in another order."""
    url = f"{postgresql_server.url}&schema=earlier"
    storage.open(url).close()
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'earlier.checkpoints'::regclass"
    with (
        psycopg.connect(postgresql_server.url, autocommit=True) as other,
        psycopg.connect(postgresql_server.url) as reader,
        ThreadPoolExecutor(1) as pool,
    ):
        other.execute("ALTER TABLE earlier.streams DROP COLUMN seconds")
        other.execute("ALTER TABLE earlier.checkpoints DROP COLUMN checksum")
        reader.execute("SELECT FROM earlier.checkpoints")
        opened = pool.submit(storage.open, url)
        while not other.execute(waiting).fetchone()[0]:
            time.sleep(0.01)
        reader.execute("SELECT FROM earlier.streams")
        reader.commit()
        opened.result().close()


def test_an_append_that_fails_midway_changes_nothing(postgresql_server: Server) -> None:
    url = f"{postgresql_server.url}&schema=failing"
    store = storage.open_event_store(url)
    number = store.append("s", store.head("s"), [b"a"])
    with psycopg.connect(postgresql_server.url) as connection:
        connection.execute("ALTER TABLE failing.frames ADD CONSTRAINT small CHECK (length(data) < 5)")
    with pytest.raises(StorageError, match="violates check constraint"):
        store.append("s", number, [b"b", b"too long"], contents={"aa": b"1"})
    assert (store.head("s"), store.has_contents("s", ["aa"])) == (number, set())
    with psycopg.connect(postgresql_server.url) as connection:
        connection.execute("ALTER TABLE failing.frames DROP CONSTRAINT small")
    assert store.append("s", number, [b"b"]) == number + 1
    store.close()


def test_a_storage_opens_the_event_streams_of_its_schema(postgresql_server: Server) -> None:
    kept = storage.open(f"{postgresql_server.url}&schema=both")
    store = storage.open_event_store(kept)
    assert store.append("s", store.head("s"), [b"a"])
    assert kept.keys() == []
    store.close()
    kept.close()


def test_an_append_notifies_only_if_somebody_is_waiting(postgresql_server: Server) -> None:
    url = f"{postgresql_server.url}&schema=watched"
    store = storage.open_event_store(url)
    with psycopg.connect(postgresql_server.url, autocommit=True) as listener:
        listener.execute("LISTEN weakfs_watched")
        store.append("s", 0, [b"a"])
        listener.execute("NOTIFY weakfs_watched, 'between'")
        # A wait without a result marks the stream as one that is waited for.
        assert store.wait("s", 1, 0.01) == 1
        store.append("s", 1, [b"b"])
        assert [found.payload for found in listener.notifies(stop_after=2)] == ["between", "s"]


def test_more_sessions_at_once_than_connections_wait_for_each_other(postgresql_server: Server) -> None:
    store = storage.open_event_store(f"{postgresql_server.url}&schema=crowded")

    def work(number: int) -> str:
        with Session.open(store, f"s{number}") as session:
            fs = InMemoryFilesystem(session)
            for part in range(3):
                fs.write("/a", f"{number}.{part}")
        with Session.open(store, f"s{number}") as session:
            return InMemoryFilesystem(session).read("/a").content

    with ThreadPoolExecutor(30) as threads:
        assert list(threads.map(work, range(30))) == [f"{number}.2" for number in range(30)]
    store.close()


def _await_free_connection(server: Server) -> None:
    for _ in range(1000):
        with suppress(psycopg.OperationalError):
            psycopg.connect(server.url).close()
            return
        time.sleep(0.01)
    raise AssertionError("no connection became free")


@pytest.mark.slow
def test_a_server_without_a_free_connection_leaves_a_session_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    database, pools = import_module("weakfs.storage.engines.postgresql.database"), []
    new_pool = database.ConnectionPool

    def keep_pool(*arguments: Any, **options: Any) -> Any:
        pools.append(new_pool(*arguments, **options))
        return pools[-1]

    monkeypatch.setattr(database, "ConnectionPool", keep_pool)
    with servers.postgresql() as server, Session.open(server.url, "s") as session:
        fs = InMemoryFilesystem(session)
        (pool,) = pools
        # The pauses between its attempts to connect grow, and one left from an outage must not make a call fail.
        assert pool.reconnect_timeout < pool.timeout
        fs.write("/before", "1")
        saved = session.to_bytes()
        with psycopg.connect(server.url, autocommit=True) as other, ExitStack() as held:
            # The connections of the session are lost, and others take all that are free.
            ours = "FROM pg_stat_activity WHERE application_name = 'weakfs'"
            other.execute(f"SELECT pg_terminate_backend(pid, 60000) {ours}")
            with pytest.raises(psycopg.OperationalError, match="too many clients"):
                while True:
                    held.enter_context(closing(psycopg.connect(server.url)))
            pool.timeout = 1.0
            with pytest.raises(StorageError, match="get a connection after"):
                fs.write("/refused", "2")
            assert session.to_bytes() == saved
            with pytest.raises(StorageError, match="too many clients"):
                storage.open(server.url)
        _await_free_connection(server)
        pool.timeout = 60.0
        fs.write("/after", "3")
        with Session.open(server.url, "s") as again:
            assert [entry.path for entry in InMemoryFilesystem(again).walk()] == ["/after", "/before"]


def test_values_too_large_for_the_server_are_refused_and_change_nothing(
    postgresql_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("weakfs.storage.engines.postgresql.database"), "LARGEST", 1000)
    store = storage.open_event_store(postgresql_server.url)
    number = store.append("large", store.head("large"), [b"a" * 400])
    for frames, contents in (([b"a" * 500, b"b" * 501], {}), ([b"b"], {"ab": b"a" * 1000})):
        with pytest.raises(
            storage.StorageError, match=r"cannot store \d,\d+ bytes at once .*the server accepts at most 1,000"
        ):
            store.append("large", number, frames, contents=contents)
    assert store.append("large", number, [b"b"]) == number + 1
    store.close()


async def test_a_cancelled_reader_that_waits_for_the_listener_leaves_no_task() -> None:
    from weakfs.storage.engines.postgresql.notifications import AsyncNotifications

    async def connect() -> Any:
        await asyncio.Event().wait()
        raise AssertionError

    notifications = AsyncNotifications(connect)
    reader = asyncio.ensure_future(notifications.listen())
    await asyncio.sleep(0)
    reader.cancel()
    await asyncio.wait([reader])
    await notifications.close()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
