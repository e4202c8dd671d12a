"""Storage in PostgreSQL: the suites over a real server, restarts, lost connections, and messages."""

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

psycopg = pytest.importorskip("psycopg")


class OnServer:
    location: str | None

    @pytest.fixture(autouse=True)
    def place(self, postgresql_server: Server) -> None:
        self.location = postgresql_server.url
        with psycopg.connect(self.location) as connection:
            (is_there,) = connection.execute("SELECT to_regclass('weakfs.checkpoints') IS NOT NULL").fetchone()
            for table in ("items", "streams", "frames", "contents", "checkpoints") if is_there else ():
                connection.execute(f"DELETE FROM weakfs.{table}")

    def url(self) -> str:
        assert self.location is not None
        return self.location


class TestPostgresStorage(OnServer, StorageConformance):
    def open_storage(self) -> Storage:
        return storage.open(self.url())


class TestAsyncPostgresStorage(OnServer, AsyncStorageConformance):
    async def aopen_storage(self) -> AsyncStorage:
        return await storage.aopen(self.url())


class TestPostgresEventStore(OnServer, EventStoreConformance):
    def open_event_store(self) -> EventStore:
        return storage.open_event_store(self.url())


class TestAsyncPostgresEventStore(OnServer, AsyncEventStoreConformance):
    async def aopen_event_store(self) -> AsyncEventStore:
        return await storage.aopen_event_store(self.url())
