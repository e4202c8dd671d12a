"""Adapters between engines with and without `async`.

Every engine is written once, as coroutines. `SyncStorage` and `SyncEventStore` call them without `async`: a coroutine
that never waits is run in place, and any other by a loop in the background. `ThreadedStorage` and `ThreadedEventStore`
call an engine without `async` from coroutines, in threads of their own.
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
