"""Storage: key-value engines, and the event streams that durable sessions are kept in."""

from weakfs.storage.errors import LeaseLost, OutcomeUnknown, StorageDamaged, StorageError, StreamConflict
from weakfs.storage.event_store import AsyncEventStore, Checkpoint, EventStore, Frame, Lease
from weakfs.storage.storage import AsyncStorage, Storage, Versioned

__all__ = [
    "AsyncEventStore",
    "AsyncStorage",
    "Checkpoint",
    "EventStore",
    "Frame",
    "Lease",
    "LeaseLost",
    "OutcomeUnknown",
    "Storage",
    "StorageDamaged",
    "StorageError",
    "StreamConflict",
    "Versioned",
]
