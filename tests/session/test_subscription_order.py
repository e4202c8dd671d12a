"""When subscribers are called: after transactions and merges, outside of locks, in the order of the records."""

from __future__ import annotations

import threading

import pytest

from tests.session.ledger import Added, Noted, Put, Recorder, make_session
from weakfs import Record
from weakfs.session import Merged, RolledBack


def test_records_of_a_transaction_are_delivered_when_it_ends() -> None:
    session, told = make_session(), Recorder()
    session.subscribe(object, told)

    with session.transaction():
        session.dispatch(Added(1))
        with session.transaction():
            session.dispatch(Added(2))
        assert told.records == []

    assert told.events == [Added(1), Added(2)]


def test_records_of_a_failed_transaction_are_delivered_with_their_rollback() -> None:
    session, told = make_session(), Recorder()
    session.subscribe(object, told)

    with pytest.raises(LookupError), session.transaction():
        session.dispatch(Added(1))
        raise LookupError

    assert [type(event) for event in told.events] == [Added, RolledBack]


def test_records_of_a_fork_are_delivered_when_it_is_merged() -> None:
    session, told = make_session(), Recorder()
    session.subscribe(object, told)
    fork = session.fork()
    fork.dispatch(Added(1))
    assert told.records == []

    session.merge(fork)

    assert [type(event) for event in told.events] == [Merged, Added]
    assert told.records == list(session.records)


def test_records_of_many_threads_are_delivered_once_each_and_in_order() -> None:
    session, told = make_session(), Recorder()
    session.subscribe(object, told)
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        for _ in range(200):
            session.dispatch(Added(1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [record.seq for record in told.records] == list(range(1, 801))


def test_events_dispatched_by_a_handler_are_not_undone_by_the_delivering_transaction() -> None:
    session = make_session()

    def answer(record: Record) -> None:
        if record.event == Added(1):
            raise KeyboardInterrupt
        session.dispatch(Noted("answer"))
        session.dispatch(Put("answer", 1))

    session.subscribe(Added, answer)
    with pytest.raises(KeyboardInterrupt), session.transaction():
        session.dispatch(Added(1))
        session.dispatch(Added(2))

    with pytest.raises(LookupError), session.transaction():
        session.dispatch(Noted("inside"))
        assert session.at(session.seq)[Noted].all() == (Noted("inside"),)
        raise LookupError

    kinds: list[type] = [type(record.event) for record in session.records]
    assert kinds.index(Put) > kinds.index(RolledBack), "the answer was undone with a transaction that was not its own"


def test_records_dispatched_inside_a_transaction_of_another_session_are_delivered() -> None:
    session, other, told = make_session("one"), make_session("other"), Recorder()
    session.subscribe(object, told)

    with other.transaction():
        session.dispatch(Added(1))
        other.dispatch(Added(1))

    assert told.events == [Added(1)]


def test_records_dispatched_under_the_lock_are_delivered_when_it_is_released() -> None:
    session, told = make_session(), Recorder()
    session.subscribe(object, told)

    with session.lock:
        session.dispatch(Added(1))
        with session.lock:
            session.dispatch(Added(2))
        assert told.events == []
    session._notify()

    assert told.events == [Added(1), Added(2)]


def test_records_of_another_thread_during_a_transaction_are_delivered_in_order() -> None:
    session, told = make_session(), Recorder()
    session.subscribe(object, told)

    with session.transaction():
        session.dispatch(Added(1))
        other = threading.Thread(target=session.dispatch, args=(Put("a", 1),))
        other.start()
        other.join()
        assert told.events == [Put("a", 1)]

    assert [record.seq for record in told.records] == [1, 2, 3]
