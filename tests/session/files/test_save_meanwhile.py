"""Saving during other activity: transactions, other threads, handlers, closed sessions."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from fixtures.sessions import story
from fixtures.sessions.kinds import Counted, Total, registry
from fixtures.sessions.portrait import portrait
from weakfs import InMemoryFilesystem, Record, Session


def loaded(path: Path) -> Session:
    session = Session.load(path, registry=registry())
    story.prepare(session)
    return session


def test_changes_in_an_open_transaction_are_not_in_the_file(tmp_path: Path) -> None:
    session = story.opened()
    session.dispatch(Counted(1))
    before = portrait(session)
    with session.transaction():
        session.dispatch(Counted(10))
        session.snapshot("inside")
        with session.transaction():
            session.dispatch(Counted(100))
            session.save(tmp_path / "s.json")
    assert portrait(loaded(tmp_path / "s.json")) == {**before, "own": session._parts()[2]}
    session.save(tmp_path / "s.json")
    assert loaded(tmp_path / "s.json")[Total].latest() == Total(111)


def test_saving_inside_a_transaction_does_not_disturb_it(tmp_path: Path) -> None:
    session = story.opened()
    with pytest.raises(KeyError), session.transaction():
        session.dispatch(Counted(10))
        session.save(tmp_path / "s.json")
        raise KeyError
    assert session[Total].latest() == Total()


def test_other_threads_may_dispatch_while_a_session_is_saved(tmp_path: Path) -> None:
    session = story.opened()
    session.dispatch(Counted(1))
    filesystem = InMemoryFilesystem(session)

    def work() -> None:
        for number in range(100):
            session.dispatch(Counted(1))
            filesystem.append("/log", f"line {number} of a log that another thread goes on writing\n")
            if not number % 10:
                session.snapshot()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    saves = 0
    while saves < 5 or any(thread.is_alive() for thread in threads):
        saves += 1
        report = session.save(tmp_path / "s.json")
        back = loaded(tmp_path / "s.json")
        assert len(back.records) == report.records
        total, newest = back[Total].latest(), back.at(back.seq)[Total].latest()
        assert total is not None
        assert total == newest
        assert total.value == sum(isinstance(record.event, Counted) for record in back.records)
        back.save(tmp_path / "again.json")
        assert (tmp_path / "again.json").read_bytes() == (tmp_path / "s.json").read_bytes()
    for thread in threads:
        thread.join()
    assert session[Total].latest() == Total(201)


def test_a_handler_may_save(tmp_path: Path) -> None:
    session = story.opened()
    saved: list[int] = []

    def handler(record: Record) -> None:
        saved.append(session.save(tmp_path / "s.json").records)

    session.subscribe(Counted, handler)
    session.dispatch(Counted(1))
    session.dispatch(Counted(1))
    assert saved == [1, 2]


def test_a_closed_session_can_be_saved(tmp_path: Path) -> None:
    session = story.tell()
    session.close("its call was cancelled")
    session.save(tmp_path / "s.json")
    assert portrait(loaded(tmp_path / "s.json")) == portrait(session)


def test_saving_adds_no_record_and_reads_no_clock(tmp_path: Path) -> None:
    clock = story.Clock()
    session = story.tell(clock)
    before, now = portrait(session), clock.now
    session.save(tmp_path / "s.json")
    assert portrait(session) == before
    assert clock.now == now


def test_a_loaded_file_may_be_replaced_or_removed(tmp_path: Path) -> None:
    session = story.tell()
    session.save(tmp_path / "s.json")
    back = loaded(tmp_path / "s.json")
    (tmp_path / "s.json").unlink()
    assert portrait(back) == portrait(session)
