"""Deleting sessions from storage: alone, and under writers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from weakfs import InMemoryFilesystem, Session
from weakfs.session import SessionConflict, SessionError
from weakfs.session.durable.commits.log_state import LogState
from weakfs.storage import (
    AsyncMemoryStorage,
    EventStore,
    LeaseLost,
    MemoryStorage,
    StorageDamaged,
    StorageError,
    aopen_event_store,
    open_event_store,
)


@pytest.fixture(params=["folder", "sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    location = MemoryStorage() if request.param == "memory" else f"{request.param}:{tmp_path}/store"
    with closing(open_event_store(location)) as store:
        yield store


def test_a_deleted_session_is_gone_and_can_be_created_again(store: EventStore) -> None:
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
    # The failed deletion released its lease.
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


def test_a_writer_learns_that_its_session_was_deleted_after_others_had_changed_it(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, other = (Session.open(store, "s", on_conflict="merge") for _ in range(2))
    InMemoryFilesystem(other).write("/a", "1")
    session.refresh()
    InMemoryFilesystem(other).write("/a", "2")
    read = type(store).read

    def read_after_deletion(self: EventStore, *arguments: object, **options: object) -> object:
        monkeypatch.undo()
        Session.delete(store, "s")
        return read(self, *arguments, **options)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(type(store), "read", read_after_deletion)
    with pytest.raises(StorageError, match="it ends at frame 0, before frame 1, which was stored: it was deleted") as e:
        InMemoryFilesystem(session).write("/b", "1")
    assert not isinstance(e.value, StorageDamaged)


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
def test_a_writer_of_a_deleted_session_leaves_a_new_one_with_its_id_alone(
    store: EventStore, on_conflict: str, frames: int
) -> None:
    session = Session.open(store, "s", on_conflict=on_conflict)  # type: ignore[arg-type]
    files = InMemoryFilesystem(session)
    files.write("/old", "1")
    Session.delete(store, "s")
    new = InMemoryFilesystem(Session.open(store, "s"))
    for number in range(frames):
        new.write("/new", f"{number}")
    for _ in range(2):
        with pytest.raises(StorageError, match="it ends at frame 0, before frame 1, which was stored: it was deleted"):
            files.write("/old", "2")
    with pytest.raises(StorageError, match=r"cannot refresh session 's' .* it was deleted"):
        session.refresh()
    session.checkpoint()
    assert store.get_checkpoint("s") is None
    assert files.read("/old").content == "1"
    assert not files.exists("/new")
    with pytest.raises(StorageError, match="it was deleted"):
        session.compact(keep=0)
    new.write("/new", "last")
    again = InMemoryFilesystem(Session.open(store, "s"))
    assert again.read("/new").content == "last"
    assert not again.exists("/old")


@pytest.mark.parametrize("is_made_again", [False, True])
@pytest.mark.parametrize("moment", ["get_checkpoint", "read", "head"])
def test_deleting_a_session_while_it_is_opened_is_not_damage(
    store: EventStore, moment: str, is_made_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session.open(store, "s") as session:
        InMemoryFilesystem(session).write("/old", "1" * 5_000)
        session.checkpoint()
    operation = getattr(store, moment)

    def then_deleted(*arguments: object, **options: object) -> object:
        found = operation(*arguments, **options)
        found = list(found) if moment == "read" else found
        monkeypatch.undo()
        Session.delete(store, "s")
        if is_made_again:
            with Session.open(store, "s") as new:
                InMemoryFilesystem(new).write("/new", "1")
        return found

    monkeypatch.setattr(store, moment, then_deleted)
    again = Session.open(store, "s")
    if moment == "head":
        # It was read before; its writer gets an error.
        with pytest.raises(StorageError, match="it was deleted"):
            InMemoryFilesystem(again).write("/other", "1")
    else:
        assert [entry.name for entry in InMemoryFilesystem(again).list()] == ["new"] * is_made_again
        InMemoryFilesystem(again).write("/other", "1")
        assert InMemoryFilesystem(Session.open(store, "s")).read("/other").content == "1"


@pytest.mark.parametrize("is_made_again", [False, True])
def test_the_lease_of_a_deleted_session_is_not_renewed(
    store: EventStore, is_made_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session.open(store, "s", exclusive=True)
    InMemoryFilesystem(session).write("/old", "1")
    log = session._log
    assert log is not None
    assert log.lease is not None
    # As if it had expired.
    store.release(log.lease.lease)
    monkeypatch.setattr(log.lease, "clock", lambda: time.monotonic() + 3_600)
    Session.delete(store, "s")
    new = InMemoryFilesystem(Session.open(store, "s")) if is_made_again else None
    if new is not None:
        new.write("/new", "1")

    with pytest.raises(StorageError, match="it was deleted"):
        InMemoryFilesystem(session).write("/old", "2")
    assert store.streams() == ["s"] * is_made_again
    if new is not None:
        # Nobody holds the lease of the new session.
        new.write("/new", "2")


@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
def test_compacting_a_deleted_session_does_not_create_it_again(store: EventStore, on_conflict: str) -> None:
    session = Session.open(store, "s", on_conflict=on_conflict)  # type: ignore[arg-type]
    for number in range(3):
        InMemoryFilesystem(session).write("/old", f"{number}")
    Session.delete(store, "s")

    with pytest.raises(StorageError, match="it was deleted"):
        session.compact(keep=0)
    assert store.streams() == []


def test_a_compaction_that_is_repeated_does_not_create_a_deleted_session_again(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_lease = LogState.take_compaction_lease

    def delete_and_take_lease(log: LogState, spent: float) -> None:
        Session.delete(store, "s")
        take_lease(log, spent)

    monkeypatch.setattr(LogState, "take_compaction_lease", delete_and_take_lease)
    session, other = (Session.open(store, "s", on_conflict="merge") for _ in range(2))
    InMemoryFilesystem(session).write("/a", "1")
    InMemoryFilesystem(other).write("/b", "2")

    with pytest.raises(StorageError, match="it was deleted"):
        session.compact(keep=1)

    assert store.streams() == []


@pytest.mark.parametrize("is_made_again", [False, True])
def test_a_reader_learns_that_its_session_was_deleted(store: EventStore, is_made_again: bool) -> None:
    session = Session.open(store, "s")
    InMemoryFilesystem(session).write("/old", "1")
    watched = session.watch()
    Session.delete(store, "s")
    if is_made_again:
        InMemoryFilesystem(Session.open(store, "s")).write("/new", "1")

    with pytest.raises(StorageError, match="it was deleted"):
        session.refresh()
    with pytest.raises(StorageError, match="it was deleted"):
        next(watched)
    with pytest.raises(StorageError, match="it was deleted"):
        asyncio.run(session.arefresh())
    assert [entry.name for entry in InMemoryFilesystem(session).list()] == ["old"]
    assert Session.open(store, "s").is_new is not is_made_again


@pytest.mark.parametrize("kind", ["folder", "sqlite"])
def test_another_process_leaves_a_new_session_with_the_id_alone(tmp_path: Path, kind: str) -> None:
    url = f"{kind}:{tmp_path}/store"
    with Session.open(url, "s") as session:
        InMemoryFilesystem(session).write("/old", "1" * 5_000)
    writer = """
import sys
from weakfs import InMemoryFilesystem, Session
from weakfs.storage import StorageError
session = Session.open(sys.argv[1], "s")
files = InMemoryFilesystem(session)
files.write("/old", "2")
print("opened", flush=True)
input()
try:
    files.write("/old", "3")
except StorageError as error:
    print("it was deleted" in str(error))
"""
    command = [sys.executable, "-c", writer, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "opened\n"
        Session.delete(url, "s")
        with Session.open(url, "s") as session:
            InMemoryFilesystem(session).write("/new", "1")
            InMemoryFilesystem(session).write("/new", "2")
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.read() == "True\n"
    with Session.open(url, "s") as session:
        files = InMemoryFilesystem(session)
        assert files.read("/new").content == "2"
        assert not files.exists("/old")


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
async def test_an_awaited_session_leaves_a_new_one_with_its_id_alone(tmp_path: Path, kind: str) -> None:
    where = AsyncMemoryStorage() if kind == "memory" else f"sqlite:{tmp_path}/store"
    session = await Session.aopen(where, "s")
    async with session.transaction():
        InMemoryFilesystem(session).write("/old", "1")
    store = await aopen_event_store(where)
    await store.delete("s")
    new = await Session.aopen(where, "s")
    async with new.transaction():
        InMemoryFilesystem(new).write("/new", "1")
    with pytest.raises(StorageError, match="it was deleted"):
        async with session.transaction():
            InMemoryFilesystem(session).write("/old", "2")
    assert await store.head("s") == 1
    await store.close()
    await new.aclose()
    again = await Session.aopen(where, "s")
    assert [entry.name for entry in InMemoryFilesystem(again).list("/")] == ["new"]
    await again.aclose()
    with pytest.raises(StorageError, match="it was deleted"):
        await session.aclose()
