"""Deleting a session from storage, while other processes may be using it."""

from __future__ import annotations

from contextlib import suppress
from uuid import uuid4

from weakfs.session.durable.held_lease import HeldLease, taken
from weakfs.session.durable.open_session import LEASE, Where, event_store, stream_of
from weakfs.session.errors import SessionConflict, SessionError
from weakfs.storage.errors import StorageError
from weakfs.storage.event_store_operations import TakeLease
from weakfs.storage.steps import run


def delete_session(where: Where, session_id: str | None, *, expected: int | None) -> str:
    """Delete a session from storage, and return its id; see `Session.delete`."""
    store = event_store(where, "process")
    try:
        name = stream_of(store, session_id)
        if name is None or not (store.head(name) or name in store.streams(name)):
            which = "" if name is None else f" {name!r}"
            raise SessionError(f"cannot delete session{which}: there is none in {store.url}; check the location")
        # Until the lease ends, nobody else can append.
        lease = HeldLease(store, run(taken(TakeLease(name, f"delete-{uuid4().hex}", LEASE)), store))
        try:
            # First: nobody can append between this and the deletion.
            run(lease.fencing(), store)
            head = store.head(name)
            if expected is not None and head != expected:
                raise SessionConflict(name, expected, head)
            store.delete(name)
        except BaseException:
            with suppress(StorageError):
                lease.release()
            raise
        return name
    finally:
        if store is not where:
            store.close()
