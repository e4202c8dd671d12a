"""The suites over an engine that is opened by a URL: with and without `async`, as a key-value store and as streams."""

from __future__ import annotations

from weakfs import storage
from weakfs.storage import AsyncEventStore, AsyncStorage, EventStore, Storage
from weakfs.testing import (
    AsyncEventStoreConformance,
    AsyncStorageConformance,
    EventStoreConformance,
    StorageConformance,
)


class Located:
    """The location of the running test, which a fixture of a subclass sets."""

    location: str | None

    def url(self) -> str:
        assert self.location is not None
        return self.location


class StorageByUrl(Located, StorageConformance):
    def open_storage(self) -> Storage:
        return storage.open(self.url())


class AsyncStorageByUrl(Located, AsyncStorageConformance):
    async def aopen_storage(self) -> AsyncStorage:
        return await storage.aopen(self.url())


class EventStoreByUrl(Located, EventStoreConformance):
    def open_event_store(self) -> EventStore:
        return storage.open_event_store(self.url())


class AsyncEventStoreByUrl(Located, AsyncEventStoreConformance):
    async def aopen_event_store(self) -> AsyncEventStore:
        return await storage.aopen_event_store(self.url())
