"""The outcome of a commit: whether its frame is in its stream, for code that finds work depending on it.

The process that appended the frame may be gone, or have lost its connection. A missing frame might still arrive from a
server that has not processed everything it received; an empty frame in its place then keeps it out.
"""

from __future__ import annotations

import os
import re

import orjson

from weakfs.session.durable.frame_decoder import parsed
from weakfs.session.durable.operations import Append, Head, Read, Steps, run
from weakfs.session.external import CommitPlace
from weakfs.storage.errors import LeaseLost, StorageError, StreamConflict
from weakfs.storage.locations import open_event_store

# Engines in the process itself: an append is over when its process has ended, or when it has raised an exception.
LOCAL = re.compile(r"(folder|sqlite):(?://(?=/))?(.*)", re.DOTALL)


def lasting_url(url: str) -> str:
    """Return the URL of a store in a form that means the same in every working directory."""
    local = LOCAL.fullmatch(url)
    if local is None:
        return url
    return "memory:" if local[2] == ":memory:" else f"{local[1]}:{os.path.abspath(local[2])}"


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
        if place.url == "memory:" or LOCAL.fullmatch(place.url):
            return False
        empty = orjson.dumps({"id": f"{place.name}-void", "after": place.after, "counter": 0})
        try:
            yield Append(place.stream, place.number - 1, [empty], None, fencing)
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
    local = LOCAL.fullmatch(place.url)
    if local is not None and not os.path.exists(local[2]):
        # Opening it would create it.
        raise StorageError(
            f"cannot reach the storage {place.url!r} of session {place.stream!r}: it is not there; put it back, or an "
            f"empty one in its place if the session is gone for good"
        )
    try:
        store = open_event_store(place.url)
    except (OSError, ValueError, ImportError) as error:
        raise StorageError(
            f"cannot reach the storage {place.url!r} of session {place.stream!r}: {error}; {remedy}"
        ) from error
    try:
        return run(was_stored(store.url, place), store)
    except StorageError as error:
        raise StorageError(
            f"cannot ask the storage {place.url!r} of session {place.stream!r}: {error}; {remedy}"
        ) from error
    finally:
        store.close()
