"""Locations of the folder engine: `folder:PATH`, optionally followed by `?durability=power` or another durability."""

from __future__ import annotations

import re
from typing import cast

from weakfs.storage.engines import Engine
from weakfs.storage.folder.storage import FolderStorage
from weakfs.storage.folder.store import Durability, FolderEventStore

# A path may contain a question mark.
_LOCATION = re.compile(r"folder:(.*?)(?:\?durability=([^?=]*))?", re.DOTALL)


def _location(url: str) -> tuple[str, Durability]:
    """Return the path and the durability in a URL."""
    found = _LOCATION.fullmatch(url)
    if found is None or not found[1]:
        raise ValueError(f"cannot open {url!r}: it has no path; write folder:PATH")
    path = re.sub("^//(?=/)", "", found[1])
    return path, cast(Durability, found[2] or "process")  # which the engine checks


def _open_storage(url: str) -> FolderStorage:
    return FolderStorage(*_location(url))


def _open_event_store(url: str) -> FolderEventStore:
    return FolderEventStore(*_location(url))


ENGINE = Engine(_open_storage, _open_event_store, path=lambda url: _location(url)[0])
