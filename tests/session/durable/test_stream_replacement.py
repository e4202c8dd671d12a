"""Replacing a stored history while others want to write."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from weakfs import InMemoryFilesystem, Session
from weakfs.session import SessionConflict
from weakfs.session.durable import stream_replacement
from weakfs.session.durable.held_lease import HeldLease
from weakfs.storage import EventStore, LeaseLost, open_event_store


@pytest.fixture(params=["folder", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Store a session with one file."""
    where = f"{request.param}:{tmp_path}/store"
    with Session.open(where, "s") as session:
        InMemoryFilesystem(session).write("/a", "1")
    return where


def replace(store: EventStore, copy_to: Callable[[str], None]) -> None:
    """Replace the stored session. The lease expires at once, as if a copy took longer than the lease lasts."""
    lease = HeldLease(store, store.lease("s", "replacement", 0.0))
    stream_replacement.replace_stream(store.url, "s", store.head("s"), lease, copy_to)


def test_nothing_is_replaced_if_another_process_took_the_expired_lease(url: str) -> None:
    def copy_to(where: str) -> None:
        session.copy_to(where)
        others.append(Session.open(url, "s", exclusive=True))

    others: list[Session] = []
    with Session.open(url, "s") as session, closing(open_event_store(url)) as store, pytest.raises(LeaseLost):
        replace(store, copy_to)

    InMemoryFilesystem(others[0]).write("/a", "2")
    others[0].close()
    with Session.open(url, "s") as again:
        assert InMemoryFilesystem(again).read("/a").content == "2"


def test_frames_appended_after_the_lease_expired_are_not_replaced(url: str) -> None:
    def copy_to(where: str) -> None:
        session.copy_to(where)
        with Session.open(url, "s") as other:
            InMemoryFilesystem(other).write("/a", "2")

    with Session.open(url, "s") as session, closing(open_event_store(url)) as store, pytest.raises(SessionConflict):
        replace(store, copy_to)

    with Session.open(url, "s") as again:
        assert InMemoryFilesystem(again).read("/a").content == "2"
