"""Opening storage in an object store."""

from __future__ import annotations

from weakfs.storage.adapters import SyncStorage, run_in_place
from weakfs.storage.engines import Engine
from weakfs.storage.engines.objects.client import AsyncClient, BlockingClient
from weakfs.storage.engines.objects.items import AsyncObjectStorage


class ObjectStorage(SyncStorage):
    """A `Storage` in an object store."""

    def __init__(self, url: str) -> None:
        super().__init__(AsyncObjectStorage(BlockingClient(url), url), run=run_in_place)


async def open_async_storage(url: str) -> AsyncObjectStorage:
    """Open an `AsyncStorage` in an object store."""
    storage = AsyncObjectStorage(AsyncClient(url), url)
    await storage.keys("heads/", limit=1)
    return storage


def _open_storage(url: str) -> ObjectStorage:
    storage = ObjectStorage(url)
    try:
        # Detects a wrong address or wrong credentials immediately.
        storage.keys("heads/", limit=1)
    except BaseException:
        storage.close()
        raise
    return storage


ENGINE = Engine(_open_storage, async_storage=open_async_storage)
