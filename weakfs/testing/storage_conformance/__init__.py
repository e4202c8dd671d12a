"""The conformance suites of key-value engines and of event stores."""

from .event_store_cases import AsyncEventStoreConformance, EventStoreConformance
from .faults import FAULTS, Fault, FaultyStorage
from .storage_cases import AsyncStorageConformance, StorageConformance

__all__ = [
    "FAULTS",
    "AsyncEventStoreConformance",
    "AsyncStorageConformance",
    "EventStoreConformance",
    "Fault",
    "FaultyStorage",
    "StorageConformance",
]
