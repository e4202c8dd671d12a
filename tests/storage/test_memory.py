"""Storage in memory: the suites over it, and over event streams in it."""

from __future__ import annotations

import pytest

from weakfs.storage import (
    AsyncEventStore,
    AsyncMemoryStorage,
    AsyncStorage,
    AsyncStorageEventStore,
    EventStore,
    MemoryStorage,
    Storage,
    StorageEventStore,
    ThreadedEventStore,
    ThreadedStorage,
)
from weakfs.testing import (
    AsyncEventStoreConformance,
    AsyncStorageConformance,
    EventStoreConformance,
    StorageConformance,
)


class TestMemoryStorage(StorageConformance):
    @pytest.fixture(autouse=True)
    def place(self) -> None:
        self.memory = MemoryStorage()

    def open_storage(self) -> Storage:
        return self.memory


class TestAsyncMemoryStorage(AsyncStorageConformance):
    @pytest.fixture(autouse=True)
    def place(self) -> None:
        self.memory = AsyncMemoryStorage()

    async def aopen_storage(self) -> AsyncStorage:
        return self.memory


class TestThreadedStorage(AsyncStorageConformance):
    @pytest.fixture(autouse=True)
    def place(self) -> None:
        self.memory = MemoryStorage()

    async def aopen_storage(self) -> AsyncStorage:
        return ThreadedStorage(self.memory)


# From a segment for every append, with constant merging, to the tail alone.
@pytest.fixture(params=[(0, 100), (200, 2_000), (32 * 1024, 2 * 1024 * 1024)], ids=str)
def budget(request: pytest.FixtureRequest) -> tuple[int, int]:
    found: tuple[int, int] = request.param
    return found


class TestStorageEventStore(EventStoreConformance):
    @pytest.fixture(autouse=True)
    def place(self, budget: tuple[int, int]) -> None:
        self.memory, self.budget = MemoryStorage(), budget

    def open_event_store(self) -> EventStore:
        return StorageEventStore(self.memory, tail_bytes=self.budget[0], merge_bytes=self.budget[1])


class TestAsyncStorageEventStore(AsyncEventStoreConformance):
    @pytest.fixture(autouse=True)
    def place(self, budget: tuple[int, int]) -> None:
        self.memory, self.budget = AsyncMemoryStorage(), budget

    async def aopen_event_store(self) -> AsyncEventStore:
        return AsyncStorageEventStore(self.memory, tail_bytes=self.budget[0], merge_bytes=self.budget[1])


class TestThreadedEventStore(AsyncEventStoreConformance):
    @pytest.fixture(autouse=True)
    def place(self) -> None:
        self.memory = MemoryStorage()

    async def aopen_event_store(self) -> AsyncEventStore:
        return ThreadedEventStore(StorageEventStore(self.memory))
