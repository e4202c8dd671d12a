"""Subscribers: they get every record once, in order, after it was applied; their errors affect nobody else."""

from __future__ import annotations

import gc
import logging
import weakref

import pytest

from tests.session.ledger import Added, Clock, Noted, Put, Recorder, Total, install_ledger, make_session, total_of
from weakfs import Record, Registry, Session


def test_a_handler_sees_the_records_of_its_event() -> None:
    session, told = make_session(), Recorder()
    session.subscribe(Added, told)

    record = session.dispatch(Added(1), cause="x")
    session.dispatch(Noted("n"))

    assert told.records == [record]


def test_a_handler_of_object_sees_every_record() -> None:
    session, told = make_session(), Recorder()
    session.subscribe(object, told)

    session.dispatch(Added(1))
    session[Total].seed(Total(1))
    session.rollback(0)

    assert told.records == list(session.records)


def test_a_handler_is_called_after_the_event_was_applied() -> None:
    session = make_session()
    seen: list[int] = []
    session.subscribe(Added, lambda record: seen.append(total_of(session)))

    session.dispatch(Added(1))
    session.dispatch(Added(1))

    assert seen == [1, 2]


def test_handlers_are_called_in_the_order_of_subscription() -> None:
    session = make_session()
    told: list[str] = []
    session.subscribe(Added, lambda record: told.append("first"))
    session.subscribe(object, lambda record: told.append("second"))
    session.subscribe(Added, lambda record: told.append("third"))

    session.dispatch(Added(1))

    assert told == ["first", "second", "third"]


def test_earlier_records_are_not_delivered() -> None:
    session, told = make_session(), Recorder()
    session.dispatch(Added(1))

    session.subscribe(object, told)

    assert told.records == []


def test_a_failing_handler_is_logged_and_affects_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    def fail(record: Record) -> None:
        raise ArithmeticError("the handler is broken")

    session, told = make_session(), Recorder()
    session.subscribe(Added, fail)
    session.subscribe(Added, told)

    with caplog.at_level(logging.ERROR, logger="weakfs.session"):
        record = session.dispatch(Added(1))

    assert told.records == [record]
    assert total_of(session) == 1
    assert [(entry.name, entry.levelname) for entry in caplog.records] == [("weakfs.session", "ERROR")]
    assert "record 1 (Added)" in caplog.text
    assert "the handler is broken" in caplog.text


def test_a_handler_that_failed_once_is_called_the_next_time(caplog: pytest.LogCaptureFixture) -> None:
    told: list[int] = []

    def fail_first(record: Record) -> None:
        told.append(record.seq)
        if record.seq == 1:
            raise ArithmeticError

    session = make_session()
    session.subscribe(Added, fail_first)

    session.dispatch(Added(1))
    session.dispatch(Added(1))

    assert told == [1, 2]
    assert len(caplog.records) == 1


def test_a_handler_may_dispatch_and_the_new_records_are_delivered_afterwards() -> None:
    session, told = make_session(), Recorder()

    def answer(record: Record) -> None:
        session.dispatch(Noted("answer"))

    session.subscribe(Added, answer)
    session.subscribe(object, told)

    session.dispatch(Added(1))

    assert told.events == [Added(1), Noted("answer")]
    assert [record.seq for record in told.records] == [1, 2]


def test_a_handler_may_open_a_transaction() -> None:
    session, told = make_session(), Recorder()

    def answer(record: Record) -> None:
        with session.transaction(cause="answer"):
            session.dispatch(Put("a", 1))
            session.dispatch(Put("b", 1))

    session.subscribe(Added, answer)
    session.subscribe(Put, told)

    session.dispatch(Added(1))

    assert told.events == [Put("a", 1), Put("b", 1)]


def test_unsubscribing_ends_a_subscription() -> None:
    session, told = make_session(), Recorder()
    unsubscribe = session.subscribe(Added, told)
    session.dispatch(Added(1))

    unsubscribe()
    session.dispatch(Added(2))

    assert told.events == [Added(1)]


def test_unsubscribing_twice_is_harmless() -> None:
    session, told = make_session(), Recorder()
    first = session.subscribe(Added, told)
    session.subscribe(Added, told)

    first()
    first()
    session.dispatch(Added(1))

    assert told.events == [Added(1)]


def test_a_handler_may_unsubscribe_itself() -> None:
    session = make_session()
    told: list[int] = []

    def once(record: Record) -> None:
        told.append(record.seq)
        unsubscribe()

    unsubscribe = session.subscribe(Added, once)

    session.dispatch(Added(1))
    session.dispatch(Added(1))

    assert told == [1]


def test_a_handler_subscribed_twice_is_called_twice() -> None:
    session, told = make_session(), Recorder()
    session.subscribe(Added, told)
    session.subscribe(Added, told)

    session.dispatch(Added(1))

    assert told.events == [Added(1), Added(1)]


def test_a_bus_is_given_every_record() -> None:
    bus = Recorder()
    session = install_ledger(Session(registry=Registry.empty(), clock=Clock(), bus=bus))

    session.dispatch(Added(1))
    with session.transaction():
        session.dispatch(Added(2))
    session.rollback(0)

    assert bus.records == list(session.records)


def test_a_failing_bus_is_logged_and_affects_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    class BrokenBus:
        def publish(self, record: Record) -> None:
            raise ConnectionError("nobody there")

    session = install_ledger(Session(registry=Registry.empty(), bus=BrokenBus()))

    session.dispatch(Added(1))

    assert total_of(session) == 1
    assert "nobody there" in caplog.text


def test_a_fork_has_its_own_subscribers() -> None:
    session, told = make_session(), Recorder()
    fork = session.fork()
    fork.subscribe(Added, told)

    session.dispatch(Added(1))
    fork.dispatch(Added(2))

    assert told.events == [Added(2)]


def test_an_unsubscribed_handler_is_freed() -> None:
    session, told = make_session(), Recorder()
    held = weakref.ref(told)
    session.subscribe(Added, told)()

    del told
    gc.collect()

    assert held() is None
