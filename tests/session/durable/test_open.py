"""Sessions opened on event streams: every change is present when the session is reopened."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Literal

import pytest
from attrs import frozen

from tests.session.durable.streams import MemoryStreams, failing_once
from weakfs import InMemoryFilesystem, Registry, Session, Toolset
from weakfs.reducers import FileTree
from weakfs.session import SessionConflict, UnknownSnapshot, UnsupportedVersion
from weakfs.storage import LeaseLost, StorageDamaged, StorageError
from weakfs.tools import ToolCalls


def reopened(store: MemoryStreams) -> Session:
    return Session.open(store)


def same(one: Session, other: Session) -> bool:
    return one.to_bytes() == other.to_bytes()


def test_files_are_present_after_reopening_a_session() -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    fs = InMemoryFilesystem(session)
    fs.write("/a.txt", "one")
    fs.write("/src/b.txt", "two\n" * 1000)
    fs.append("/src/b.txt", "three")
    fs.chmod("/a.txt", 0o600)
    fs.move("/a.txt", "/c.txt")
    again = reopened(store)
    assert same(again, session)
    assert InMemoryFilesystem(again).read("/src/b.txt").content == "two\n" * 1000 + "three"


def test_tool_calls_are_present_after_reopening_a_session() -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    tools = Toolset(session)
    tools.call("write_file", {"path": "a.txt", "content": "x = 1\n"})
    tools.call("edit_file", {"path": "a.txt", "old_string": "x", "new_string": "y"})
    tools.call("edit_file", {"path": "a.txt", "old_string": "not there", "new_string": "y"})
    tools.call("read_file", {"path": "a.txt"})
    assert same(reopened(store), session)


def test_snapshots_rollbacks_forks_and_merges_are_present_after_reopening() -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", "1")
    first = session.snapshot("first")
    fs.write("/b/c", "2" * 3000)
    session.snapshot()
    session.rollback(first)
    assert same(reopened(store), session)
    fork = session.fork()
    fs.bind(fork).write("/b/d", "3")
    fork.snapshot("inside")
    fs.write("/e", "4")
    session.merge(fork)
    assert same(reopened(store), session)
    session.rollback(2)
    session.drop_snapshot("first")
    assert same(reopened(store), session)


def test_a_failed_transaction_leaves_its_records() -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", "1")
    with pytest.raises(RuntimeError), session.transaction(cause="me"):
        fs.write("/b", "2")
        raise RuntimeError
    with session.transaction():
        fs.write("/c", "3")
        session.snapshot("inside")
        with session.transaction():
            fs.write("/d", "4")
    assert len(session.records) == 5
    assert same(reopened(store), session)


@pytest.mark.parametrize("scheme", ["folder", "sqlite"])
def test_a_transaction_that_does_nothing_leaves_the_next_change_as_it_is(tmp_path: Path, scheme: str) -> None:
    with Session.open(f"{scheme}:{tmp_path / 'sessions'}", "s") as session:
        snapshot = session.snapshot()
        Toolset(session).call("write_file", {"path": "/a", "content": "1"})
        with session.transaction():
            pass
        session.rollback(snapshot)
        assert [type(record.event).__name__ for record in session.records] == ["FileWritten", "ToolCall", "RolledBack"]


def test_a_reopened_session_can_be_changed() -> None:
    store = MemoryStreams()
    in_memory = Session(session_id="s")
    for number in range(5):
        session = reopened(store) if number else Session.open(store, "s")
        for one in (session, in_memory):
            one._clock = lambda: 7
            fs = InMemoryFilesystem(one)
            fs.write(f"/{number}", str(number))
            one.snapshot(str(number))
        assert same(session, in_memory)


@pytest.mark.parametrize("moment", ["before"])
def test_an_append_that_fails_changes_nothing(moment: str) -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", "1")
    before = session.to_bytes()
    store.fault = failing_once(moment)
    with pytest.raises(StorageError):
        fs.write("/b", "2")
    assert session.to_bytes() == before
    fs.write("/c", "3")
    assert not fs.exists("/b")
    assert same(reopened(store), session)


def test_an_append_with_unknown_outcome_is_repeated_once() -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    fs = InMemoryFilesystem(session)
    store.fault = failing_once("after")
    fs.write("/a", "1")
    assert len(session.records) == 1
    assert same(reopened(store), session)


def test_a_second_worker_gets_a_conflict_and_refreshes() -> None:
    store = MemoryStreams()
    one = Session.open(store, "s")
    other = Session.open(store, "s")
    InMemoryFilesystem(one).write("/a", "1")
    fs = InMemoryFilesystem(other)
    with pytest.raises(SessionConflict) as caught:
        fs.write("/b", "2")
    assert (caught.value.expected, caught.value.actual) == (0, 1)
    assert not other.records
    assert other.refresh() == 1
    fs.write("/b", "2")
    one.refresh()
    assert same(one, other)
    assert same(reopened(store), one)


def test_a_second_worker_merges() -> None:
    store = MemoryStreams()
    one = Session.open(store, "s", on_conflict="merge")
    other = Session.open(store, "s", on_conflict="merge")
    InMemoryFilesystem(one).write("/a", "1")
    InMemoryFilesystem(other).write("/b", "2")
    with one.transaction():
        InMemoryFilesystem(one).write("/c", "3")
    other.snapshot("here")
    one.refresh()
    assert sorted(entry.name for entry in InMemoryFilesystem(one).list()) == ["a", "b", "c"]
    assert same(one, other)
    assert same(reopened(store), one)


def test_an_exclusive_session_keeps_others_out() -> None:
    store = MemoryStreams()
    one = Session.open(store, "s", exclusive=True)
    with pytest.raises(LeaseLost):
        Session.open(store, "s", exclusive=True)
    other = Session.open(store, "s")
    with pytest.raises(LeaseLost):
        InMemoryFilesystem(other).write("/a", "1")
    InMemoryFilesystem(one).write("/a", "1")
    one.close()
    other.refresh()
    InMemoryFilesystem(other).write("/a", "2")


def test_a_session_is_opened_in_an_event_loop(tmp_path: Path) -> None:
    with asyncio.run(Session.aopen(tmp_path)) as session:
        InMemoryFilesystem(session).write("/a", "1")
        assert Session.open(tmp_path).session_id == session.session_id


@pytest.mark.slow
def test_opening_reads_only_the_checkpoint() -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    tools = Toolset(session)
    for number in range(1200):
        tools.call("write_file", {"path": f"{number % 7}.txt", "content": f"{number}\n" * 300})
    session.checkpoint()
    read: list[int] = []
    own_read = store.read
    store.read = lambda stream, **options: read.append(1) or own_read(stream, **options)  # type: ignore[method-assign,func-returns-value]
    again = Session.open(store, "s")
    assert read == [1]
    assert InMemoryFilesystem(again).read("/3.txt").content == "1193\n" * 300
    assert len(again[ToolCalls].all()) == 1200
    assert len(read) > 3
    assert again.to_bytes() == session.to_bytes()
    with pytest.raises(UnknownSnapshot):
        again.rollback("nothing")
    again.rollback(700)
    assert again[FileTree].latest() is not None
    assert again[FileTree].latest().digest == session.at(700)[FileTree].latest().digest  # type: ignore[union-attr]


def test_contents_that_later_frames_edit_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStreams()
    with Session.open(store, "s") as session:
        tools = Toolset(session)
        for number in range(40):
            text = f"value {number}\n" * 100
            tools.call("write_file", {"path": f"{number}", "content": text})
            tools.call("write_file", {"path": f"{number}", "content": text * 2, "mode": "append"})
            with session.transaction():
                tools.call("write_file", {"path": f"of {number}", "content": text})
            edit = {"path": f"of {number}", "old_string": text, "new_string": f"{text}value\n"}
            assert tools.call("edit_file", edit).success
        expected = session.to_bytes()
    reads: list[int] = []
    read = store.get_contents

    def counted(stream: str, digests: Iterable[str]) -> dict[str, bytes]:
        found = read(stream, digests)
        reads.append(len(found))
        return found

    monkeypatch.setattr(store, "get_contents", counted)
    again = Session.open(store, "s")
    assert len(reads) < 4, reads
    assert again.to_bytes() == expected


@frozen
class Task:
    text: str


@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
@pytest.mark.parametrize("reason", ["another worker", "a full disk"])
def test_a_slice_that_a_failed_change_installed_is_stored_with_the_next(
    reason: str, on_conflict: Literal["raise", "merge"]
) -> None:
    store = MemoryStreams()
    registry = Registry.with_types(Task)
    session = Session.open(store, "s", registry=registry, on_conflict=on_conflict)
    InMemoryFilesystem(session).write("/a", "1")
    session.install(Task)
    if reason == "a full disk":
        store.fault = failing_once("before")
    else:
        InMemoryFilesystem(Session.open(store, "s")).write("/b", "2")
    with suppress(StorageError, SessionConflict):
        session[Task].append(Task("one"))
    session.refresh()
    session[Task].append(Task("two"))
    again = Session.open(store, registry=registry)
    assert again[Task].all() == session[Task].all()
    assert same(again, session)


def test_what_a_session_was_opened_with_is_gone_at_once(tmp_path: Path) -> None:
    # Not only after a garbage collection, which would visit every record.
    with closing(Session.open(tmp_path, "s")) as session:
        fs = InMemoryFilesystem(session)
        for number in range(400):
            fs.write(f"/a/{number}", f"text {number}")
        session.checkpoint()
        for number in range(200):
            fs.write(f"/b/{number}", f"text {number}")

    def open_and_go_on() -> None:
        with closing(Session.open(tmp_path, "s")) as session:
            InMemoryFilesystem(session).write("/c", "more")
            session.at(300)
            session.checkpoint()

    open_and_go_on()
    gc.collect()
    gc.disable()
    try:
        open_and_go_on()
        garbage = gc.collect()
    finally:
        gc.enable()
    assert garbage < 100


def test_a_stream_that_was_cut_before_its_checkpoint_is_not_opened(tmp_path: Path) -> None:
    session = Session.open(tmp_path, "s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", "1")
    (journal,) = tmp_path.glob("*/*.journal")
    size = journal.stat().st_size
    fs.write("/b", "2")
    session.checkpoint()
    session.close()
    os.truncate(journal, size)
    with pytest.raises(StorageDamaged, match="a checkpoint after frame 2, but ends at frame 1"):
        Session.open(tmp_path)


@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
def test_missing_frames_at_the_end_are_reported(tmp_path: Path, on_conflict: Literal["raise", "merge"]) -> None:
    url = f"sqlite:{tmp_path}/a.db"

    def lose_frames() -> None:
        with closing(sqlite3.connect(tmp_path / "a.db")) as file, file:
            file.execute("DELETE FROM frames WHERE number > 2")

    with Session.open(url, "s") as session:
        fs = InMemoryFilesystem(session)
        for number in range(4):
            fs.write(f"/{number}", str(number))
            if number == 1:
                session.checkpoint()
    behind = Session.open(url, "s", on_conflict=on_conflict)
    behind._log.head = 2  # type: ignore[union-attr]  # As it was two frames ago.
    lose_frames()
    before = behind.to_bytes()
    with pytest.raises(StorageDamaged, match=r"frames 3 to 4 .* are missing.*from a backup"):
        InMemoryFilesystem(behind).write("/b", "b")
    assert behind.to_bytes() == before
    with pytest.raises(StorageDamaged, match=r"frames 3 to 4 .* are missing.*from a backup"):
        Session.open(url, "s")
    with suppress(StorageDamaged):
        behind.close()


def test_a_frame_of_a_later_version_is_not_ignored() -> None:
    store = MemoryStreams()
    store.append("s", 0, [b'{"id":"a-1","after":0,"counter":1,"later":[]}'])
    with pytest.raises(UnsupportedVersion, match="the unknown field 'later'"):
        Session.open(store)
