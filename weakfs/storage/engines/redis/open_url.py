"""Opening storage in Redis."""

from __future__ import annotations

from weakfs.storage.adapters import SyncEventStore, SyncStorage, run_in_place
from weakfs.storage.engines import Engine
from weakfs.storage.engines.redis.client import AsyncClient, SyncClient
from weakfs.storage.engines.redis.items import AsyncRedisStorage
from weakfs.storage.engines.redis.streams import AsyncRedisEventStore


class RedisStorage(SyncStorage):
    """A `Storage` in Redis."""

    def __init__(self, url: str) -> None:
        self._url = url
        super().__init__(AsyncRedisStorage(_client(url)), run=run_in_place)

    def event_store(self) -> RedisEventStore:
        """Open the event streams of the same namespace, on their own connections."""
        return RedisEventStore(self._url)


class RedisEventStore(SyncEventStore):
    """An `EventStore` in Redis."""

    def __init__(self, url: str) -> None:
        super().__init__(AsyncRedisEventStore(_client(url)), run=run_in_place)


def _client(url: str) -> SyncClient:
    client = SyncClient(url)
    try:
        run_in_place(client.check())
    except BaseException:
        run_in_place(client.close())
        raise
    return client


async def _async_client(url: str) -> AsyncClient:
    client = AsyncClient(url)
    try:
        await client.check()
    except BaseException:
        await client.close()
        raise
    return client


async def open_async_storage(url: str) -> AsyncRedisStorage:
    """Open an `AsyncStorage` in Redis."""
    return AsyncRedisStorage(await _async_client(url))


async def open_async_event_store(url: str) -> AsyncRedisEventStore:
    """Open an `AsyncEventStore` in Redis."""
    return AsyncRedisEventStore(await _async_client(url))


ENGINE = Engine(RedisStorage, RedisEventStore, open_async_storage, open_async_event_store)
