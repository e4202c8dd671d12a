"""Adapters between synchronous and asynchronous engines.

Every engine is written once, as coroutines. `SyncStorage` and `SyncEventStore` call them synchronously: a coroutine
that never waits is run in place, any other on an event loop in the background. `ThreadedStorage` and
`ThreadedEventStore` call a synchronous engine from coroutines, in their own threads.
"""

from weakfs.storage.adapters.asynchronous import InPlaceStorage, ThreadedEventStore, ThreadedStorage
from weakfs.storage.adapters.synchronous import BackgroundLoop, Run, SyncEventStore, SyncStorage, run_in_place

__all__ = [
    "BackgroundLoop",
    "InPlaceStorage",
    "Run",
    "SyncEventStore",
    "SyncStorage",
    "ThreadedEventStore",
    "ThreadedStorage",
    "run_in_place",
]
