"""Storage in a folder: the suites over it, through both interfaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from weakfs import storage
from weakfs.storage import AsyncEventStore, AsyncStorage, EventStore, Storage
from weakfs.storage.folder import FolderEventStore
from weakfs.testing import (
    AsyncEventStoreConformance,
    AsyncStorageConformance,
    EventStoreConformance,
    StorageConformance,
)


class InFolder:
    location: str | None

    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.location = f"folder:{tmp_path}/kept"


class TestFolderStorage(InFolder, StorageConformance):
    def open_storage(self) -> Storage:
        return storage.open(self.location or "")


class TestThreadedFolderStorage(InFolder, AsyncStorageConformance):
    async def aopen_storage(self) -> AsyncStorage:
        return await storage.aopen(self.location or "")


class TestFolderEventStore(InFolder, EventStoreConformance):
    def open_event_store(self) -> EventStore:
        return storage.open_event_store(self.location or "")


class TestSyncedFolderEventStore(InFolder, EventStoreConformance):
    def open_event_store(self) -> EventStore:
        return storage.open_event_store(f"{self.location}?durability=power")


class TestFolderEventStoreOfManySegments(EventStoreConformance):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.path = tmp_path

    def open_event_store(self) -> EventStore:
        return FolderEventStore(self.path, segment_size=600)


class TestThreadedFolderEventStore(InFolder, AsyncEventStoreConformance):
    async def aopen_event_store(self) -> AsyncEventStore:
        return await storage.aopen_event_store(self.location or "")
