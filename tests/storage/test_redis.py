"""Storage in Redis: the suites over a real server, restarts, lost connections, and error messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.storage import servers
from tests.storage.servers import Server
from tests.storage.suites import AsyncEventStoreByUrl, AsyncStorageByUrl, EventStoreByUrl, Located, StorageByUrl
from weakfs import InMemoryFilesystem, Session, storage

redis = pytest.importorskip("redis")


class OnServer(Located):
    @pytest.fixture(autouse=True)
    def place(self, redis_server: Server) -> None:
        self.location = redis_server.url
        with redis.Redis.from_url(self.location) as client:
            client.flushall()


# With and without `async` the engine is the same code over two clients: a sample has each client and each part once.
@pytest.mark.exhaustive
class TestRedisStorage(OnServer, StorageByUrl):
    pass


class TestAsyncRedisStorage(OnServer, AsyncStorageByUrl):
    pass


class TestRedisEventStore(OnServer, EventStoreByUrl):
    pass


@pytest.mark.exhaustive
class TestAsyncRedisEventStore(OnServer, AsyncEventStoreByUrl):
    pass


def test_opening_a_server_that_syncs_every_second_issues_a_warning(tmp_path: Path) -> None:
    with (
        servers.redis(tmp_path, fsync="everysec") as server,
        pytest.warns(storage.DurabilityWarning, match="appendfsync is 'everysec'; set appendonly to yes"),
    ):
        storage.open(server.url).close()


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random"])
def test_opening_a_server_that_evicts_sessions_issues_a_warning(redis_server: Server, policy: str) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        client.config_set("maxmemory", 1 << 30)
        client.config_set("maxmemory-policy", policy)
        try:
            with pytest.warns(
                storage.DurabilityWarning, match=f"when its memory is full: .* is '{policy}'; set it to noeviction"
            ):
                storage.open(redis_server.url).close()
            # The keys of sessions never expire, so this policy does not evict them.
            client.config_set("maxmemory-policy", "volatile-lru")
            storage.open(redis_server.url).close()
        finally:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("maxmemory", 0)


@contextmanager
def refusing(client: Any, how: str) -> Iterator[str]:
    """Make the server refuse all changes; yield the text of its answer."""
    if how == "replica":
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
    elif how == "memory":
        client.config_set("maxmemory", 1)
    else:
        client.execute_command("ACL", "SETUSER", "default", "-evalsha")
    try:
        yield {"replica": "read only replica", "memory": "maxmemory", "rights": "no permissions"}[how]
    finally:
        client.execute_command("REPLICAOF", "NO", "ONE")
        client.config_set("maxmemory", 0)
        client.execute_command("ACL", "SETUSER", "default", "+@all")


@pytest.mark.parametrize("how", ["replica", "memory", "rights"])
def test_a_server_that_refuses_changes_leaves_a_session_as_it_was(redis_server: Server, how: str) -> None:
    location = f"{redis_server.url}?namespace=refusing-{how}"
    with (
        redis.Redis.from_url(redis_server.url) as client,
        Session.open(location, "s") as session,
    ):
        fs = InMemoryFilesystem(session)
        fs.write("/before", "1" * 1000)
        saved = session.to_bytes()
        with refusing(client, how) as why:
            with pytest.raises(storage.StorageError, match=why) as caught:
                fs.write("/refused", "2" * 1000)
            assert not isinstance(caught.value, storage.OutcomeUnknown)
            assert session.to_bytes() == saved
        fs.write("/after", "3" * 1000)
        with Session.open(location, "s") as again:
            assert [entry.path for entry in InMemoryFilesystem(again).walk()] == ["/after", "/before"]
            assert again.to_bytes() == session.to_bytes()


def test_a_server_that_is_loading_has_done_nothing(redis_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    # Loading takes too short a time to be observed.
    store = storage.open_event_store(redis_server.url)
    client = import_module("weakfs.storage.engines.redis.client").SyncClient

    async def loading(*_: object) -> object:
        raise redis.BusyLoadingError("Redis is loading the dataset in memory")

    with monkeypatch.context() as patch:
        patch.setattr(client, "execute", loading)
        with pytest.raises(storage.StorageError, match="is loading the dataset") as caught:
            store.append("loading", 0, [b"a"])
    assert not isinstance(caught.value, storage.OutcomeUnknown)
    assert store.append("loading", store.head("loading"), [b"a"])
    store.close()


def test_namespaces_are_separate(redis_server: Server) -> None:
    one, two = (storage.open_event_store(f"{redis_server.url}?namespace={name}") for name in ("one", "two"))
    one.append("s", one.head("s"), [b"a"])
    assert two.streams() == []
    one.close()
    two.close()
    with pytest.raises(ValueError, match="invalid namespace 'a b'"):
        storage.open(f"{redis_server.url}?namespace=a%20b")


def test_scripts_are_reloaded_if_the_server_has_lost_them(redis_server: Server) -> None:
    store = storage.open_event_store(redis_server.url)
    number = store.append("s", store.head("s"), [b"a"])
    with redis.Redis.from_url(redis_server.url) as client:
        client.script_flush()
    assert store.append("s", number, [b"b"]) == number + 1
    store.close()


def test_a_stream_of_an_earlier_version_has_no_id_and_its_handle_refers_to_no_later_one(redis_server: Server) -> None:
    store, handle = storage.open_event_store(f"{redis_server.url}?namespace=earlier"), storage.StreamHandle("s")
    store.append("s", 0, [b"a"])
    with redis.Redis.from_url(redis_server.url) as client:
        assert client.hdel("earlier:{s}:head", "id") == 1
    assert store.head(handle) == 1
    assert store.append(handle, 1, [b"b"]) == 2
    store.delete("s")
    store.append("s", 0, [b"c", b"d"])
    with pytest.raises(storage.StreamConflict):
        store.append(handle, 2, [b"e"])
    assert [frame.data for frame in store.read("s")] == [b"c", b"d"]
    store.close()


def test_a_storage_opens_the_event_streams_of_its_namespace(redis_server: Server) -> None:
    kept = storage.open(f"{redis_server.url}?namespace=both")
    store = storage.open_event_store(kept)
    assert store.append("s", store.head("s"), [b"a"])
    assert kept.keys() == []
    store.close()
    kept.close()


def test_values_too_large_for_the_server_are_refused_and_change_nothing(
    redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("weakfs.storage.engines.redis.client"), "LARGEST", 1000)
    store = storage.open_event_store(redis_server.url)
    number = store.append("large", store.head("large"), [b"a" * 900])
    for frames, contents in (([b"a" * 1001], {}), ([b"b"], {"ab": b"a" * 1001})):
        with pytest.raises(
            storage.StorageError, match=r"cannot store 1,001 bytes at once .*the server accepts at most 1,000"
        ):
            store.append("large", number, frames, contents=contents)
    kept = storage.open(redis_server.url)
    with pytest.raises(storage.StorageError, match="cannot store 1,001 bytes"):
        kept.set("large", b"a" * 1001)
    assert kept.get("large") is None
    assert store.append("large", number, [b"b"]) == number + 1
    kept.close()
    store.close()
