"""Opening storage by its location: a URL, or the path of a folder.

| location | what it is |
| --- | --- |
| `folder:PATH`, `file:///PATH`, or a path | files in a folder |
| `sqlite:PATH` | a SQLite file |
| `postgresql://USER:PASSWORD@HOST/DATABASE` | tables in PostgreSQL; the option `schema` names their schema |
| `redis://HOST`, `rediss://HOST` | keys in Redis; their names begin with the option `namespace` |
| `s3://BUCKET/PREFIX`, `gs://...`, `az://...` | objects; the options are those of obstore |
| `memory:` | memory of this process, empty whenever it is opened |
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Protocol, cast, runtime_checkable
from urllib.parse import unquote

from weakfs.storage.adapters import ThreadedEventStore, ThreadedStorage
from weakfs.storage.engines import Engine
from weakfs.storage.engines.urls import folder_url, split_folder
from weakfs.storage.event_store import AsyncEventStore, EventStore
from weakfs.storage.storage import AsyncStorage, Storage
from weakfs.storage.streams import AsyncStorageEventStore, StorageEventStore


@runtime_checkable
class _HasEventStore(Protocol):
    """A storage whose engine can store event streams better than under keys."""

    def event_store(self) -> EventStore: ...


# The module of each engine, and the extra with the packages that it needs.
_ENGINES = {
    "folder": ("folder.engine", ""),
    "memory": ("engines.memory", ""),
    "sqlite": ("engines.sqlite.open_url", ""),
    "postgresql": ("engines.postgresql.open_url", "postgresql"),
    "postgres": ("engines.postgresql.open_url", "postgresql"),
    "redis": ("engines.redis.open_url", "redis"),
    "rediss": ("engines.redis.open_url", "redis"),
    "s3": ("engines.objects.open_url", "s3"),
    "gs": ("engines.objects.open_url", "s3"),
    "az": ("engines.objects.open_url", "s3"),
}
# A single letter is a Windows drive.
_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):(.*)", re.DOTALL)


def open(url: str | os.PathLike[str]) -> Storage:
    """Open a key-value engine at a URL, or in a folder given by its path.

    Raises `ValueError` if there is no engine for the location, `ModuleNotFoundError` if a package is missing, and
    `StorageError` if the engine cannot be reached.
    """
    engine, found = _find(url)
    return engine.storage(found)


async def aopen(url: str | os.PathLike[str]) -> AsyncStorage:
    """Open a key-value engine whose methods are `async`. Raises what `open` raises."""
    engine, found = _find(url)
    if engine.async_storage is not None:
        return await engine.async_storage(found)
    return ThreadedStorage(engine.storage(found))


def open_event_store(location: str | os.PathLike[str] | Storage) -> EventStore:
    """Open the event streams at a location, or those in a `Storage`, which stays open when the store is closed.

    Raises what `open` raises.
    """
    if not isinstance(location, str | os.PathLike):
        return location.event_store() if isinstance(location, _HasEventStore) else StorageEventStore(location)
    engine, url = _find(location)
    if engine.event_store is not None:
        return engine.event_store(url)
    return StorageEventStore(engine.storage(url), close_storage=True)


async def aopen_event_store(location: str | os.PathLike[str] | AsyncStorage) -> AsyncEventStore:
    """Open event streams whose methods are `async`; otherwise like `open_event_store`."""
    if not isinstance(location, str | os.PathLike):
        return AsyncStorageEventStore(location)
    engine, url = _find(location)
    if engine.async_event_store is not None:
        return await engine.async_event_store(url)
    if engine.async_storage is not None:
        return AsyncStorageEventStore(await engine.async_storage(url), close_storage=True)
    return ThreadedEventStore(open_event_store(location))


def url_of(location: str | os.PathLike[str]) -> str:
    """Return the URL of a location, which for a path is `folder:PATH`; its scheme is in lower case."""
    if not isinstance(location, str):
        return folder_url(os.fspath(location))
    found = _URL.fullmatch(location)
    if found is None:
        return f"folder:{location}"
    name = found[1].lower()
    if name != "file":
        return f"{name}:{found[2]}"
    path, durability = split_folder(f"folder:{found[2]}")
    return folder_url(unquote(path), durability)


def local_path(location: str | os.PathLike[str]) -> str | None:
    """Return the path of the folder or file at a location; `None` if it is in memory or on a server."""
    if not url_of(location).startswith(("folder:", "sqlite:")):
        return None
    engine, url = _find(location)
    return None if engine.path is None or url == "sqlite::memory:" else engine.path(url)


def _find(location: str | os.PathLike[str]) -> tuple[Engine, str]:
    """Return the engine for a location, and its URL."""
    url = url_of(location)
    name = url.partition(":")[0]
    if "\0" in url:
        raise ValueError(f"cannot open storage '{name}:...': its location has a NUL character; leave it out")
    found = _ENGINES.get(name)
    if found is None:
        raise ValueError(
            f"cannot open storage '{name}:...': there is no engine with that name; use one of "
            f"{', '.join(f'{one}:' for one in _ENGINES)}, or begin a path with './' or '/'"
        )
    module, extra = found
    try:
        return cast(Engine, import_module(f"weakfs.storage.{module}").ENGINE), url
    except ModuleNotFoundError as error:
        if not extra or (error.name or "").startswith("weakfs"):
            raise
        raise ModuleNotFoundError(
            f"cannot open storage '{name}:...': the package {error.name} is not installed; run: "
            f"pip install 'weakfs[{extra}]'",
            name=error.name,
        ) from error
