"""Opening storage in PostgreSQL."""

from __future__ import annotations

from typing import TypeVar

from weakfs.storage.adapters import SyncEventStore, SyncStorage, run_in_place
from weakfs.storage.engines import Engine
from weakfs.storage.engines.postgresql.database import AsyncDatabase, Database, SyncDatabase
from weakfs.storage.engines.postgresql.items import AsyncPostgresStorage
from weakfs.storage.engines.postgresql.streams import AsyncPostgresEventStore

D = TypeVar("D", bound=Database)


class PostgresStorage(SyncStorage):
    """A `Storage` in PostgreSQL."""

    def __init__(self, url: str) -> None:
        self._url = url
        super().__init__(AsyncPostgresStorage(run_in_place(_opened(SyncDatabase(url)))), run=run_in_place)

    def event_store(self) -> PostgresEventStore:
        """Open the event streams of the same schema, on their own connections."""
        return PostgresEventStore(self._url)


class PostgresEventStore(SyncEventStore):
    """An `EventStore` in PostgreSQL."""

    def __init__(self, url: str) -> None:
        super().__init__(AsyncPostgresEventStore(run_in_place(_opened(SyncDatabase(url)))), run=run_in_place)


async def _opened(database: D) -> D:
    try:
        await database.open()
        await database.make_tables()
    except BaseException:
        await database.close()
        raise
    return database


async def open_async_storage(url: str) -> AsyncPostgresStorage:
    """Open an `AsyncStorage` in PostgreSQL."""
    return AsyncPostgresStorage(await _opened(AsyncDatabase(url)))


async def open_async_event_store(url: str) -> AsyncPostgresEventStore:
    """Open an `AsyncEventStore` in PostgreSQL."""
    return AsyncPostgresEventStore(await _opened(AsyncDatabase(url)))


ENGINE = Engine(PostgresStorage, PostgresEventStore, open_async_storage, open_async_event_store)
