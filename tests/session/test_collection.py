"""Garbage collection: an unreferenced session is freed together with everything that only it held."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread

import pytest

from tests.session.external.fakes import FakeExternal
from tests.session.ledger import Added, Noted, Put, Total, make_session, total_of
from weakfs import MergeConflict, Record, Session, SessionError


def plain(session: Session) -> None:
    for number in range(600):
        session.dispatch(Added(number))


def gone_back(session: Session) -> None:
    session.snapshot("s")
    session.dispatch(Added(1))
    session.rollback("s")
    session.rollback(0)
    session.at(1)[Total].latest()


def with_transactions(session: Session) -> None:
    with session.transaction(), session.transaction():
        session.dispatch(Added(1))
    with pytest.raises(LookupError), session.transaction():
        session.dispatch(Added(1))
        raise LookupError
    with pytest.raises(MergeConflict), session.transaction():
        session.dispatch(Added(1))
        thread = Thread(target=session.dispatch, args=(Added(2),))
        thread.start()
        thread.join()


def with_forks(session: Session) -> None:
    forks = [session.fork() for _ in range(3)]
    for number, fork in enumerate(forks):
        fork.fork().dispatch(Added(1))
        fork.dispatch(Put(str(number), 1))
        session.merge(fork)


def with_subscribers(session: Session) -> None:
    def answer(record: Record) -> None:
        if session.seq < 3:
            session.dispatch(Added(1))

    unsubscribe = session.subscribe(Added, answer)
    session.dispatch(Added(1))
    unsubscribe()


def with_externals(session: Session) -> None:
    session.attach(FakeExternal("disk", {"/a": "1"}))
    session.snapshot("s")
    session.rollback("s")


def with_tasks(session: Session) -> None:
    async def call() -> None:
        with session.transaction():
            session.dispatch(Noted("n"))
            await asyncio.gather(asyncio.sleep(0), asyncio.to_thread(session.dispatch, Put("a", 1)))

    asyncio.run(call())


def with_a_generator(session: Session) -> None:
    def work() -> Iterator[None]:
        with session.transaction():
            session.dispatch(Added(1))
            yield

    next(work())


def with_generators_out_of_order(session: Session) -> None:
    def work() -> Iterator[None]:
        with session.transaction():
            yield

    first, second = work(), work()
    next(first)
    next(second)
    next(first, None)
    with suppress(SessionError):
        next(second, None)


def replayed(session: Session) -> None:
    plain(session)
    again = make_session("again")
    again.replay(session.records)
    session.compact(keep=10)


WORK = [
    plain,
    gone_back,
    with_transactions,
    with_forks,
    with_subscribers,
    with_externals,
    with_tasks,
    with_a_generator,
    with_generators_out_of_order,
    replayed,
]


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("work", WORK, ids=[work.__name__ for work in WORK])
def test_an_unreferenced_session_is_freed(work: Callable[[Session], None]) -> None:
    session = make_session()
    session[Total].seed(Total(5))
    value = weakref.ref(session[Total].latest())
    held = weakref.ref(session)
    work(session)

    del session
    gc.collect()

    assert held() is None
    assert value() is None


@pytest.mark.parametrize("work", [plain, gone_back, with_forks, replayed], ids=lambda work: work.__name__)
def test_no_cycle_keeps_a_session_waiting_for_the_collector(work: Callable[[Session], None]) -> None:
    session = make_session()
    work(session)
    held = weakref.ref(session)

    gc.disable()
    try:
        del session
        assert held() is None
    finally:
        gc.enable()


def test_a_fork_and_its_session_do_not_keep_each_other_alive() -> None:
    session = make_session()
    fork = session.fork()
    held_session = weakref.ref(session)
    other = make_session()
    held_fork = weakref.ref(other.fork())

    del session
    gc.collect()

    assert held_session() is None
    assert held_fork() is None
    assert total_of(fork) == 0


@pytest.mark.slow
def test_working_with_the_collector_on_loses_nothing() -> None:
    session = make_session()
    thresholds = gc.get_threshold()
    gc.set_threshold(20, 2, 2)
    try:
        for number in range(1500):
            session.dispatch(Added(1))
            session.dispatch(Put(str(number % 40), number))
            if number % 10 == 0:
                session.snapshot(str(number))
            if number % 50 == 0:
                fork = session.fork()
                fork.dispatch(Noted(str(number)))
                session.merge(fork)
    finally:
        gc.set_threshold(*thresholds)

    assert total_of(session) == 1500
    for number in range(0, 1500, 50):
        assert session.at(str(number))[Total].latest() == Total(number + 1)
    assert [note.text for note in session[Noted].all()] == [str(number) for number in range(0, 1500, 50)]


def test_views_and_records_do_not_keep_the_session_alive() -> None:
    session = make_session()
    session.dispatch(Added(1))
    view, records = session.at(1), session.records
    held = weakref.ref(session)

    del session
    gc.collect()

    assert held() is None
    assert view[Total].latest() == Total(1)
    assert records[0].event == Added(1)
