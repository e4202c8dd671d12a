"""Deleting sessions from storage: alone, and under writers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from weakfs import InMemoryFilesystem, Session
from weakfs.session import SessionConflict, SessionError
from weakfs.storage import EventStore, LeaseLost, MemoryStorage, StorageError, open_event_store


@pytest.fixture(params=["folder", "sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    location = MemoryStorage() if request.param == "memory" else f"{request.param}:{tmp_path}/store"
    with closing(open_event_store(location)) as store:
        yield store


def test_a_deleted_session_is_gone_and_can_be_made_again(store: EventStore) -> None:
    for name in ("one", "two"):
        InMemoryFilesystem(Session.open(store, name)).write("/a", name * 5_000)
    with pytest.raises(SessionError, match="it holds 'one', 'two'; pass session_id"):
        Session.delete(store)
    assert Session.delete(store, "one") == "one"
    assert store.streams() == ["two"]
    assert Session.open(store, "one").is_new
    assert InMemoryFilesystem(Session.open(store, "two")).read("/a").content == "two" * 5_000
    assert Session.delete(store) == "two"
    with pytest.raises(SessionError, match="there is none in"):
        Session.delete(store, "two")
    with pytest.raises(SessionError, match="there is none in"):
        Session.delete(store)
    assert store.streams() == []


def test_a_session_that_changed_since_is_not_deleted(store: EventStore) -> None:
    files = InMemoryFilesystem(Session.open(store, "s"))
    files.write("/a", "1")
    with pytest.raises(SessionConflict) as caught:
        Session.delete(store, "s", expected=0)
    assert (caught.value.expected, caught.value.actual) == (0, 1)
    # The lease that it took was given back.
    files.write("/b", "2")
    assert Session.delete(store, "s", expected=2) == "s"


def test_a_session_that_was_opened_exclusively_is_not_deleted(store: EventStore) -> None:
    with Session.open(store, "s", exclusive=True) as session:
        InMemoryFilesystem(session).write("/a", "1")
        with pytest.raises(LeaseLost):
            Session.delete(store, "s")
    assert Session.delete(store, "s")


@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
def test_a_writer_learns_that_its_session_was_deleted(store: EventStore, on_conflict: str) -> None:
    session = Session.open(store, "s", on_conflict=on_conflict)  # type: ignore[arg-type]
    files = InMemoryFilesystem(session)
    files.write("/a", "1")
    Session.delete(store, "s")
    for _ in range(2):
        with pytest.raises(StorageError, match="it ends at frame 0, before frame 1, which was stored: it was deleted"):
            files.write("/b", "2")
    assert not files.exists("/b")
    session.checkpoint()
    assert store.get_checkpoint("s") is None
