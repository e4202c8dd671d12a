"""Storage in Redis: the suites over a real server, restarts, lost connections, and messages."""

from __future__ import annotations

import pytest

from tests.storage.servers import Server
from weakfs import storage
from weakfs.storage import AsyncEventStore, AsyncStorage, EventStore, Storage
from weakfs.testing import (
    AsyncEventStoreConformance,
    AsyncStorageConformance,
    EventStoreConformance,
    StorageConformance,
)

redis = pytest.importorskip("redis")


class OnServer:
    location: str | None

    @pytest.fixture(autouse=True)
    def place(self, redis_server: Server) -> None:
        self.location = redis_server.url
        with redis.Redis.from_url(self.location) as client:
            client.flushall()

    def url(self) -> str:
        assert self.location is not None
        return self.location


class TestRedisStorage(OnServer, StorageConformance):
    def open_storage(self) -> Storage:
        return storage.open(self.url())


class TestAsyncRedisStorage(OnServer, AsyncStorageConformance):
    async def aopen_storage(self) -> AsyncStorage:
        return await storage.aopen(self.url())


class TestRedisEventStore(OnServer, EventStoreConformance):
    def open_event_store(self) -> EventStore:
        return storage.open_event_store(self.url())


class TestAsyncRedisEventStore(OnServer, AsyncEventStoreConformance):
    async def aopen_event_store(self) -> AsyncEventStore:
        return await storage.aopen_event_store(self.url())
