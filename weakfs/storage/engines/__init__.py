"""The engines: one module for each client, and `Engine`, the interface that each of them supplies.

A module is imported when a location of its kind is opened. It imports its client, which may belong to an extra.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from weakfs.storage.event_store import AsyncEventStore, EventStore
from weakfs.storage.storage import AsyncStorage, Storage


class Engine(NamedTuple):
    """How locations of one kind are opened; each function is called with the URL.

    Without `event_store`, event streams are stored under keys of `storage`. Without the asynchronous functions, the
    synchronous ones are called in threads.
    """

    storage: Callable[[str], Storage]
    event_store: Callable[[str], EventStore] | None = None
    async_storage: Callable[[str], Awaitable[AsyncStorage]] | None = None
    async_event_store: Callable[[str], Awaitable[AsyncEventStore]] | None = None
    # Returns the path of the folder or file, for an engine on the local disk.
    path: Callable[[str], str] | None = None
