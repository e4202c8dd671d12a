"""Opening storage in Redis."""

from __future__ import annotations

from typing import TypeVar

from weakfs.storage.adapters import SyncEventStore, SyncStorage, run_in_place
from weakfs.storage.engines import Engine
from weakfs.storage.engines.redis.client import AsyncClient, Client, SyncClient
from weakfs.storage.engines.redis.items import AsyncRedisStorage
from weakfs.storage.engines.redis.streams import AsyncRedisEventStore

C = TypeVar("C", bound=Client)


class RedisStorage(SyncStorage):
    """A `Storage` in Redis."""

    def __init__(self, url: str) -> None:
        self._url = url
        super().__init__(AsyncRedisStorage(run_in_place(_opened(SyncClient(url)))), run=run_in_place)

    def event_store(self) -> RedisEventStore:
        """Open the event streams of the same namespace, on their own connections."""
        return RedisEventStore(self._url)


class RedisEventStore(SyncEventStore):
    """An `EventStore` in Redis."""

    def __init__(self, url: str) -> None:
        super().__init__(AsyncRedisEventStore(run_in_place(_opened(SyncClient(url)))), run=run_in_place)


async def _opened(client: C) -> C:
    try:
        await client.check()
    except BaseException:
        await client.close()
        raise
    return client


async def open_async_storage(url: str) -> AsyncRedisStorage:
    """Open an `AsyncStorage` in Redis."""
    return AsyncRedisStorage(await _opened(AsyncClient(url)))


async def open_async_event_store(url: str) -> AsyncRedisEventStore:
    """Open an `AsyncEventStore` in Redis."""
    return AsyncRedisEventStore(await _opened(AsyncClient(url)))


ENGINE = Engine(RedisStorage, RedisEventStore, open_async_storage, open_async_event_store)
