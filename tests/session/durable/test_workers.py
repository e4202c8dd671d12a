"""Several workers on one session: the changes of each are present once, in the order of the storage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from random import Random
from threading import Thread
from typing import Literal

import pytest

from tests.sampling import sample
from tests.session.durable.streams import MemoryStreams, failing_once
from weakfs import InMemoryFilesystem, MergeConflict, Session, Toolset
from weakfs.session import Reverted, SessionConflict
from weakfs.storage import Frame, OutcomeUnknown, StorageError


def names(session: Session) -> list[str]:
    return sorted(entry.name for entry in InMemoryFilesystem(session).list())


@pytest.mark.parametrize("seed", sample(range(40)))
def test_interleaved_workers_lose_nothing(seed: int) -> None:
    dice = Random(seed)
    store = MemoryStreams()
    workers = [Session.open(store, "s", on_conflict="merge") for _ in range(3)]
    expected: dict[str, str] = {}
    for number in range(40):
        place = dice.randrange(3)
        session = workers[place]
        fs = InMemoryFilesystem(session)
        name = f"{place}-{dice.randrange(5)}"
        kind = dice.choice(["write", "call", "transaction", "snapshot", "refresh", "fork"])
        if kind == "write":
            fs.write(f"/{name}", str(number))
        elif kind == "call":
            assert Toolset(session).call("write_file", {"path": name, "content": str(number)}).success
        elif kind == "transaction":
            with session.transaction():
                fs.write(f"/{name}", "before")
                fs.write(f"/{name}", str(number))
        elif kind == "fork":
            fork = session.fork()
            fs.bind(fork).write(f"/{name}", str(number))
            session.merge(fork)
        elif kind == "snapshot":
            session.snapshot(f"{place} {number}")
            continue
        else:
            session.refresh()
            continue
        expected[name] = str(number)
    for session in workers:
        session.refresh()
        fs = InMemoryFilesystem(session)
        assert {name: fs.read(f"/{name}").content for name in names(session)} == expected
        assert session.to_bytes() == workers[0].to_bytes()
    ids = [snapshot.snapshot_id for snapshot in workers[0].snapshots]
    assert len(ids) == len(set(ids))
    calls = [record.cause for record in workers[0].records if type(record.event).__name__ == "ToolCall"]
    assert len(calls) == len(set(calls))
    assert Session.open(store, "s").to_bytes() == workers[0].to_bytes()


def test_threads_with_separate_sessions_lose_nothing() -> None:
    store = MemoryStreams()

    def work(place: int) -> None:
        session = Session.open(store, "s", on_conflict="merge")
        for number in range(15):
            InMemoryFilesystem(session).append(f"/{place}", f"{number}\n")

    threads = [Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    session = Session.open(store, "s")
    for place in range(4):
        expected = "".join(f"{number}\n" for number in range(15))
        assert InMemoryFilesystem(session).read(f"/{place}").content == expected


def test_a_real_conflict_loses_nothing_on_either_side() -> None:
    store = MemoryStreams()
    one, other = (Session.open(store, "s", on_conflict="merge") for _ in range(2))
    InMemoryFilesystem(one).write("/a", "one\n")
    with pytest.raises(MergeConflict):
        InMemoryFilesystem(other).write("/a", "other\n")
    assert InMemoryFilesystem(other).read("/a").content == "one\n"
    InMemoryFilesystem(other).write("/a", "other\n")
    one.refresh()
    assert InMemoryFilesystem(one).read("/a").content == "other\n"


@pytest.mark.parametrize("merges", [False, True])
def test_a_change_that_failed_and_was_stored_is_rolled_back(merges: bool) -> None:
    store = MemoryStreams()
    session = Session.open(store, "s", on_conflict="merge" if merges else "raise")
    fs = InMemoryFilesystem(session)
    fs.write("/kept", "1")
    fails = [True, True, True]

    def lost(moment: str) -> None:
        # The first attempt stored it; the others fail.
        if fails and (moment == "after" or len(fails) < 3):
            fails.pop()
            raise OutcomeUnknown("the connection was lost")

    store.fault = lost
    with pytest.raises(OutcomeUnknown):
        fs.write("/lost", "2")
    store.fault = lambda moment: None
    assert not fs.exists("/lost")
    fs.write("/next", "3")
    assert names(session) == ["kept", "next"]
    assert names(Session.open(store, "s")) == ["kept", "next"]
    assert Session.open(store, "s").to_bytes() == session.to_bytes()


def test_a_transaction_that_cannot_be_stored_is_undone() -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    fs = InMemoryFilesystem(session)
    fs.write("/kept", "1")
    before = session.to_bytes()

    def down(moment: str) -> None:
        raise StorageError("the server is down")

    store.fault = down
    with pytest.raises(StorageError, match="down"), session.transaction():
        fs.write("/lost", "2")
    assert session.to_bytes() == before
    store.fault = failing_once("never")
    with suppress(RuntimeError), session.transaction():
        fs.write("/undone", "3")
        raise RuntimeError
    assert names(session) == ["kept"]
    assert Session.open(store, "s").to_bytes() == session.to_bytes()


@pytest.mark.parametrize("next_step", ["refresh", "write", "merge"])
def test_a_change_that_failed_and_was_stored_is_never_shown(next_step: str) -> None:
    store = MemoryStreams()
    session = Session.open(store, "s", on_conflict="merge" if next_step == "merge" else "raise")
    fs = InMemoryFilesystem(session)
    fs.write("/kept", "1")

    def interrupt(moment: str) -> None:
        if moment == "after":
            raise KeyboardInterrupt

    store.fault = interrupt
    with pytest.raises(KeyboardInterrupt):
        fs.write("/lost", "2")
    # The rollback is stored, and its acknowledgement is lost as well.
    with pytest.raises(KeyboardInterrupt):
        fs.write("/lost", "3")
    assert names(session) == ["kept"]
    store.fault = lambda moment: None
    if next_step == "refresh":
        session.refresh()
        assert names(session) == ["kept"]
    fs.write("/next", "3")
    assert names(session) == ["kept", "next"]
    assert Session.open(store, "s").to_bytes() == session.to_bytes()


def test_rolling_back_a_failed_change_conflicts_with_work_built_on_it() -> None:
    store = MemoryStreams()
    session = Session.open(store, "s")
    fs = InMemoryFilesystem(session)
    fs.write("/kept", "0")
    store.fault = failing_once("after", StorageError("the answer was lost"))
    with pytest.raises(StorageError):
        fs.write("/uncertain", "1")
    other = Session.open(store, "s")
    InMemoryFilesystem(other).write("/other", "2")
    with pytest.raises(SessionConflict):
        fs.write("/next", "3")
    assert names(session) == ["kept"]
    session.refresh()
    fs.write("/next", "3")
    assert names(session) == ["kept", "next", "other", "uncertain"]
    assert Session.open(store, "s").to_bytes() == session.to_bytes()


def test_others_may_append_while_a_failed_change_is_rolled_back() -> None:
    store = MemoryStreams()
    session = Session.open(store, "s", on_conflict="merge")
    fs = InMemoryFilesystem(session)
    store.fault = failing_once("after", StorageError("the answer was lost"))
    with pytest.raises(StorageError):
        fs.write("/uncertain", "1")
    other = Session.open(store, "s")
    appends: list[str] = []

    def step_in(moment: str) -> None:
        # Before the rollback.
        appends.append(moment)
        if appends == ["before", "after", "before"] or appends == ["before", "before"]:
            store.fault = lambda moment: None
            InMemoryFilesystem(other).write("/other", "2")

    store.fault = step_in
    fs.write("/next", "3")
    assert names(session) == ["next", "other", "uncertain"]
    assert Session.open(store, "s").to_bytes() == session.to_bytes()


def test_a_read_that_fails_halfway_is_repeated() -> None:
    store = MemoryStreams()
    writer, reader = Session.open(store, "s"), Session.open(store, "s")
    tools = Toolset(writer)
    for number in range(3):
        tools.call("write_file", {"path": f"{number}", "content": str(number)})
    read = store.read

    def broken(stream: str, *, after: int = 0, limit: int | None = None) -> Iterator[Frame]:
        yield from islice(read(stream, after=after), 2)
        raise StorageError("told to fail")

    store.read = broken  # type: ignore[method-assign]  # made to fail once
    with pytest.raises(StorageError):
        reader.refresh()
    store.read = read  # type: ignore[method-assign]  # made to fail once
    reader.refresh()
    reader.checkpoint()
    assert Session.open(store, "s").to_bytes() == reader.to_bytes() == writer.to_bytes()


@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
def test_a_forked_process_is_another_worker(tmp_path: Path, on_conflict: Literal["raise", "merge"]) -> None:
    session = Session.open(tmp_path, "s", on_conflict=on_conflict)
    fs = InMemoryFilesystem(session)
    fs.write("/before", "1")
    child = os.fork()
    if not child:
        with suppress(BaseException):
            fs.write("/child", "2")
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    if on_conflict == "raise":
        with pytest.raises(SessionConflict):
            fs.write("/parent", "3")
        session.refresh()
    fs.write("/parent", "3")
    assert names(session) == ["before", "child", "parent"]
    assert Session.open(tmp_path).to_bytes() == session.to_bytes()


@pytest.mark.parametrize("how", ["revert", "undo", "restore"])
def test_a_reversion_knows_its_record_if_others_changed_the_session_in_the_meantime(how: str, tmp_path: Path) -> None:
    own, other = (Session.open(tmp_path, "s", on_conflict="merge", clock=lambda: 0) for _ in range(2))
    files = InMemoryFilesystem(own)
    tools = Toolset(own, files)
    for number in (1, 2):
        tools.call("write_file", {"path": "/a", "content": f"{number}\n"}, call_id=f"c{number}")
    early = own.at(own.seq - 1).seq
    tools.call("write_file", {"path": "/a", "content": "3\n"}, call_id="c3")
    for name in ("/b", "/c"):
        InMemoryFilesystem(other).write(name, "theirs\n")
    done = own.undo() if how == "undo" else own.revert("c3") if how == "revert" else own.restore(early)
    assert done.record is not None
    assert isinstance(next(one for one in own.records if one.seq == done.record).event, Reverted)
    assert files.read("/a").content == "2\n"
    for name in ("/b", "/c"):
        InMemoryFilesystem(other).write(name, "theirs again\n")
    again = own.revert(done.record)
    assert files.read("/a").content == "3\n"
    assert [files.read(name).content for name in ("/b", "/c")] == ["theirs again\n"] * 2
    assert again.record == own.seq
    own.close()
    other.close()


def test_a_reversion_in_a_transaction_that_was_merged_is_reverted_alone(tmp_path: Path) -> None:
    own, other = (Session.open(tmp_path, "s", on_conflict="merge", clock=lambda: 0) for _ in range(2))
    files = InMemoryFilesystem(own)
    tools = Toolset(own, files)
    for number in (1, 2):
        tools.call("write_file", {"path": "/a", "content": f"{number}\n"}, call_id=f"c{number}")
    with own.transaction(cause="both"):
        files.write("/d", "kept\n")
        own.revert("c2")
        InMemoryFilesystem(other).write("/b", "theirs\n")
    assert files.read("/a").content == "1\n"
    assert isinstance(own.records[-1].event, Reverted)
    own.revert(own.records[-1])
    assert [files.read(path).content for path in ("/a", "/b", "/d")] == ["2\n", "theirs\n", "kept\n"]
    own.close()
    other.close()
