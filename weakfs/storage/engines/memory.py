"""Storage in memory: for tests, and for sessions that need not outlive the process."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping

from weakfs.storage.adapters import SyncStorage, run_in_place
from weakfs.storage.engine_base import BatchedStorage
from weakfs.storage.engines import Engine
from weakfs.storage.keys import check_item, check_key
from weakfs.storage.storage import Versioned


class AsyncMemoryStorage(BatchedStorage):
    """An `AsyncStorage` in memory. Its methods never wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, Versioned] = {}
        self._keys: list[str] = []
        self._count = 0

    @property
    def url(self) -> str:
        return "memory:"

    async def get_versioned(self, key: str) -> Versioned | None:
        return self._values.get(check_key(key))

    async def set_many(self, values: Mapping[str, bytes]) -> None:
        for key, value in values.items():
            check_item(key, value)
        with self._lock:
            for key, value in values.items():
                self._put(key, value)

    async def create(self, key: str, value: bytes) -> str | None:
        check_item(key, value)
        with self._lock:
            return None if key in self._values else self._put(key, value)

    async def replace(self, key: str, value: bytes, *, version: str) -> str | None:
        check_item(key, value)
        with self._lock:
            found = self._values.get(key)
            return self._put(key, value) if found is not None and found.version == version else None

    async def delete(self, key: str) -> bool:
        check_key(key)
        with self._lock:
            if self._values.pop(key, None) is None:
                return False
            del self._keys[bisect_left(self._keys, key)]
            return True

    async def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        with self._lock:
            found: list[str] = []
            at = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
            while at < len(self._keys) and self._keys[at].startswith(prefix) and (limit is None or len(found) < limit):
                found.append(self._keys[at])
                at += 1
            return found

    async def clear(self, prefix: str = "") -> int:
        with self._lock:
            gone = [key for key in self._keys if key.startswith(prefix)]
            for key in gone:
                del self._values[key]
            self._keys = [key for key in self._keys if not key.startswith(prefix)]
            return len(gone)

    async def close(self) -> None:
        """Do nothing: the values stay for as long as the object is in use."""

    def _put(self, key: str, value: bytes) -> str:
        if key not in self._values:
            insort(self._keys, key)
        # Counted for the whole storage rather than per key: a key that is deleted and set again gets another version.
        self._count += 1
        version = str(self._count)
        self._values[key] = Versioned(bytes(value), version)
        return version


class MemoryStorage(SyncStorage):
    """A `Storage` in memory."""

    def __init__(self) -> None:
        super().__init__(AsyncMemoryStorage(), run=run_in_place)


async def _open(url: str) -> AsyncMemoryStorage:
    return AsyncMemoryStorage()


ENGINE = Engine(lambda url: MemoryStorage(), async_storage=_open)
