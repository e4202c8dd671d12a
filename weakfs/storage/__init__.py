"""Storage: key-value engines, and the event streams in which durable sessions are stored.

Names are imported from their modules when they are first used: a session in memory needs only the errors.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.storage.adapters import SyncEventStore, SyncStorage, ThreadedEventStore, ThreadedStorage
    from weakfs.storage.engine_base import DerivedStorage
    from weakfs.storage.engines.memory import AsyncMemoryStorage, MemoryStorage
    from weakfs.storage.errors import (
        DurabilityWarning,
        FrameDamaged,
        LeaseLost,
        OutcomeUnknown,
        StorageDamaged,
        StorageError,
        StreamConflict,
    )
    from weakfs.storage.event_store import AsyncEventStore, Checkpoint, EventStore, Frame, Lease
    from weakfs.storage.locations import aopen, aopen_event_store, open, open_event_store
    from weakfs.storage.storage import AsyncStorage, Storage, Versioned
    from weakfs.storage.stream_handle import StreamHandle
    from weakfs.storage.streams import AsyncStorageEventStore, StorageEventStore

__all__ = [
    "AsyncEventStore",
    "AsyncMemoryStorage",
    "AsyncStorage",
    "AsyncStorageEventStore",
    "Checkpoint",
    "DerivedStorage",
    "DurabilityWarning",
    "EventStore",
    "Frame",
    "FrameDamaged",
    "Lease",
    "LeaseLost",
    "MemoryStorage",
    "OutcomeUnknown",
    "Storage",
    "StorageDamaged",
    "StorageError",
    "StorageEventStore",
    "StreamConflict",
    "StreamHandle",
    "SyncEventStore",
    "SyncStorage",
    "ThreadedEventStore",
    "ThreadedStorage",
    "Versioned",
    "aopen",
    "aopen_event_store",
    "open",
    "open_event_store",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "adapters": "SyncEventStore SyncStorage ThreadedEventStore ThreadedStorage",
        "engine_base": "DerivedStorage",
        "engines.memory": "AsyncMemoryStorage MemoryStorage",
        "errors": (
            "DurabilityWarning FrameDamaged LeaseLost OutcomeUnknown StorageDamaged StorageError StreamConflict"
        ),
        "event_store": "AsyncEventStore Checkpoint EventStore Frame Lease",
        "locations": "aopen aopen_event_store open open_event_store",
        "storage": "AsyncStorage Storage Versioned",
        "stream_handle": "StreamHandle",
        "streams": "AsyncStorageEventStore StorageEventStore",
    },
)
