"""Checking all that is stored of a stream, apart from its contents, which their readers compare with their digests."""

from __future__ import annotations

from weakfs.storage.engines.sqlite.open_url import SqliteEventStore
from weakfs.storage.errors import FrameDamaged, StorageDamaged
from weakfs.storage.event_store import EventStore
from weakfs.storage.folder import FolderEventStore


def damage_in(store: EventStore, stream: str) -> list[StorageDamaged]:
    """Read the frames and the checkpoint of a stream, and return the damage that was found.

    Reading continues after frames that are damaged or missing. Any other damage, and that of an engine that does not
    name the frames, ends it.
    """
    if isinstance(store, FolderEventStore):
        return list[StorageDamaged](store.check(stream))
    found: list[StorageDamaged] = []
    if isinstance(store, SqliteEventStore):
        try:
            store.check_file()
        except StorageDamaged as damaged:
            found.append(damaged)
    checkpoint = None
    try:
        checkpoint = store.get_checkpoint(stream)
    except StorageDamaged as damaged:
        found.append(damaged)
    try:
        head, last = store.head(stream), 0
        while True:
            try:
                for frame in store.read(stream, after=last):
                    last = frame.number
                break
            except FrameDamaged as damaged:
                found.append(damaged)
                last = damaged.last
                if last >= head:
                    break
    except StorageDamaged as damaged:
        found.append(damaged)
    else:
        if head and not last and checkpoint is None and not found:
            found.append(FrameDamaged(stream, 1, head, "they are missing", store.url))
    return found
