"""Locations of the folder engine; see `weakfs.storage.engines.urls`."""

from __future__ import annotations

import re
from typing import cast

from weakfs.storage.engines import Engine
from weakfs.storage.engines.urls import split_folder
from weakfs.storage.folder.storage import FolderStorage
from weakfs.storage.folder.store import Durability, FolderEventStore


def _location(url: str) -> tuple[str, Durability]:
    """Return the path and the durability in a URL."""
    path, durability = split_folder(url)
    if not path:
        raise ValueError(f"cannot open {url!r}: it has no path; write folder:PATH")
    return re.sub("^//(?=/)", "", path), cast(Durability, durability or "process")  # the engine checks it


def _open_storage(url: str) -> FolderStorage:
    return FolderStorage(*_location(url))


def _open_event_store(url: str) -> FolderEventStore:
    return FolderEventStore(*_location(url))


ENGINE = Engine(_open_storage, _open_event_store, path=lambda url: _location(url)[0])
