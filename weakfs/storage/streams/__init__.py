"""Event streams over any key-value engine."""

from weakfs.storage.streams.store import AsyncStorageEventStore, StorageEventStore

__all__ = ["AsyncStorageEventStore", "StorageEventStore"]
