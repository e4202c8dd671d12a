"""The outcome of a commit: whether its frame is in its stream, for code that finds work that depends on it.

The process that appended the frame may be gone, or have lost its connection. A missing frame might still arrive from a
server that has not processed everything it received; an empty frame in its place then keeps it out.
"""

from __future__ import annotations

import os

import orjson

from weakfs.session.durable.frames.decoder import parsed
from weakfs.session.durable.held_lease import patiently
from weakfs.session.external_filesystems import CommitPlace
from weakfs.storage.errors import LeaseLost, StorageError, StreamConflict
from weakfs.storage.event_store_operations import Append, Head, Read
from weakfs.storage.locations import local_path, open_event_store
from weakfs.storage.steps import Steps, run


def lasting_url(url: str) -> str:
    """Return the URL of a store in a form that means the same in every working directory."""
    path = local_path(url)
    if path is None:
        return "memory:" if url == "sqlite::memory:" else url
    return url if os.path.isabs(path) else f"{url.partition(':')[0]}:{os.path.abspath(path)}"


def was_stored(url: str, place: CommitPlace, *, fencing: int | None = None) -> Steps[bool]:
    """Return whether a commit is in its stream. If this returns false, it never will be.

    Raises `StorageError` if that cannot be determined. `url` is that of the store, for the message.
    """
    while True:
        found = next(iter((yield Read(place.stream, place.number - 1, 1))), None)
        if found is not None and found.number == place.number:
            return bool(parsed(found.number, found.data)["id"] == place.name)
        if found is not None or (yield Head(place.stream)) >= place.number:
            raise StorageError(
                f"cannot tell whether frame {place.number} of stream {place.stream!r} in {url!r} was stored: it "
                f"was dropped with old records; compare the files with the session"
            )
        if place.url == "memory:" or local_path(place.url) is not None:
            # Nothing can still arrive: the append has failed, or the engine ran in the process that appended, which has
            # ended.
            return False
        empty = orjson.dumps({"id": f"{place.name}-void", "after": place.after, "counter": 0})
        try:
            yield from patiently(Append(place.stream, place.number - 1, [empty], None, fencing))
        except StreamConflict as conflict:
            if conflict.actual < place.number:
                # The stream was deleted.
                return False
        except LeaseLost:
            # The holder of the lease keeps the commit out as well.
            return False


def was_stored_anywhere(place: CommitPlace) -> bool:
    """Return whether a commit is in its stream, in the store at its URL.

    Raises `StorageError` if the store cannot be reached or used.
    """
    remedy = "make it reachable, or open the directory with its session"
    try:
        path = local_path(place.url)
        if path is not None and not os.path.exists(path):
            # Opening the storage would create it.
            raise FileNotFoundError(
                "it does not exist; restore it, or create an empty one if the session is gone for good"
            )
        store = open_event_store(place.url)
    except (OSError, ValueError, ImportError) as error:
        raise StorageError(
            f"cannot reach the storage {place.url!r} of session {place.stream!r}: {error}; {remedy}"
        ) from error
    try:
        return run(was_stored(store.url, place), store)
    except StorageError as error:
        raise StorageError(
            f"cannot query the storage {place.url!r} of session {place.stream!r}: {error}; {remedy}"
        ) from error
    finally:
        store.close()
