"""Sessions opened on event streams: every change is there when the session is opened again."""

from __future__ import annotations

import pytest

from tests.session.durable.streams import MemoryStreams, failing_once
from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.session import SessionConflict
from weakfs.storage import StorageError


def reopened(store: MemoryStreams) -> Session:
    return Session.open(store)


def same(one: Session, other: Session) -> bool:
    return one.to_bytes() == other.to_bytes()


def test_files_are_there_when_a_session_is_opened_again() -> None:
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


def test_tool_calls_are_there_when_a_session_is_opened_again() -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    tools = Toolset(session)
    tools.call("write_file", {"path": "a.txt", "content": "x = 1\n"})
    tools.call("edit_file", {"path": "a.txt", "old_string": "x", "new_string": "y"})
    tools.call("edit_file", {"path": "a.txt", "old_string": "not there", "new_string": "y"})
    tools.call("read_file", {"path": "a.txt"})
    assert same(reopened(store), session)


def test_snapshots_rollbacks_forks_and_merges_are_there_again() -> None:
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


def test_a_reopened_session_goes_on() -> None:
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
