"""One step: all reducers run, then all results are assigned and recorded. A failed step has no effect."""

from __future__ import annotations

import sys
import threading

import pytest
from attrs import frozen

from tests.session.ledger import (
    Added,
    Broken,
    Clock,
    Noted,
    Put,
    Shelf,
    Total,
    install_ledger,
    make_session,
    notes_of,
    shelf_of,
    total_of,
)
from weakfs import Record, Registry, Session, SessionError


def raise_broken(value: object, event: Broken) -> object:
    raise ArithmeticError(event.reason)


def worked_session() -> Session:
    """Make a session with a past: values, notes, a snapshot."""
    session = make_session()
    session.dispatch(Added(3), cause="before")
    session.dispatch(Put("a", 1))
    session.dispatch(Noted("kept"))
    session.snapshot("here")
    return session


def everything(session: Session) -> object:
    """Read all that a session shows of itself."""
    return (
        total_of(session),
        shelf_of(session),
        notes_of(session),
        list(session.records),
        session.snapshots,
        session.seq,
    )


def test_dispatch_returns_the_record() -> None:
    session = Session(registry=Registry.empty(), clock=Clock(start=40))

    record = session.dispatch(Added(1), cause="call-1")

    assert record == Record(seq=1, at=40, event=Added(1), cause="call-1")


def test_a_record_without_a_cause_names_nobody() -> None:
    assert make_session().dispatch(Added(1)).cause is None


@pytest.mark.parametrize("failing", [Total, Shelf, Noted])
def test_a_reducer_that_raises_leaves_everything_as_it_was(failing: type) -> None:
    session = worked_session()
    before = everything(session)
    for type_ in (Total, Shelf, Noted):
        if type_ is failing:
            session[type_].register(Broken, raise_broken)
        else:
            session[type_].register(Broken, lambda value, event: value and type(value)())

    with pytest.raises(ArithmeticError, match="out of order"):
        session.dispatch(Broken(), cause="fault")

    assert everything(session) == before


def test_no_result_is_assigned_if_one_reducer_raises() -> None:
    session = make_session()
    session[Total].register(Put, lambda total, event: Total(99))
    session[Noted].register(Put, lambda note, event: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        session.dispatch(Put("a", 1))

    assert total_of(session) == 0
    assert shelf_of(session) == {}
    assert notes_of(session) == []
    assert len(session.records) == 0


def test_a_failed_dispatch_takes_no_number() -> None:
    session = make_session()
    session[Total].register(Broken, raise_broken)
    with pytest.raises(ArithmeticError):
        session.dispatch(Broken())

    assert session.dispatch(Added(1)).seq == 1


def test_a_failed_dispatch_can_be_followed_by_any_other_step() -> None:
    session = worked_session()
    session[Total].register(Broken, raise_broken)
    with pytest.raises(ArithmeticError):
        session.dispatch(Broken())

    session.dispatch(Added(4))
    session.rollback("here")

    assert total_of(session) == 3


def test_a_clock_that_raises_leaves_everything_as_it_was() -> None:
    readings = iter([1])

    def clock() -> int:
        for reading in readings:
            return reading
        raise OSError("the clock stopped")

    session = install_ledger(Session(session_id="s", registry=Registry.empty(), clock=clock))
    session.dispatch(Added(1))

    with pytest.raises(OSError, match="stopped"):
        session.dispatch(Added(1))

    assert total_of(session) == 1
    assert len(session.records) == 1


def test_an_event_that_is_not_an_attrs_class_is_refused_with_a_remedy() -> None:
    session = make_session()

    with pytest.raises(TypeError, match=r"cannot dispatch .*: it is a dict; .*@attrs\.frozen"):
        session.dispatch({"by": 1})

    assert len(session.records) == 0


def test_two_events_with_one_name_are_distinguished_by_their_tags_or_refused() -> None:
    def make(number: int) -> object:
        @frozen
        class Happened:
            number: int

        return Happened(number)

    session = make_session()
    session.dispatch(make(1))

    with pytest.raises(ValueError, match=r"'Happened'.*another tag with @event"):
        session.dispatch(make(2))

    assert len(session.records) == 1


def test_a_reducer_that_dispatches_is_refused() -> None:
    session = make_session()

    def reentrant(total: Total, note: Noted) -> Total:
        session.dispatch(Added(1))
        return total

    session[Total].register(Noted, reentrant)

    with pytest.raises(SessionError, match="reducers are pure"):
        session.dispatch(Noted("x"))

    assert total_of(session) == 0
    assert len(session.records) == 0
    assert session.dispatch(Added(1)).seq == 1


def test_concurrent_dispatches_of_threads_all_take_effect() -> None:
    session = make_session()
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        for _ in range(500):
            session.dispatch(Added(1))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)

    assert total_of(session) == 2000
    assert [record.seq for record in session.records] == list(range(1, 2001))
    assert [record.at for record in session.records] == sorted(record.at for record in session.records)


def test_reading_deciding_and_dispatching_is_one_step_under_the_lock() -> None:
    session = make_session()
    barrier = threading.Barrier(4)

    def double_or_start() -> None:
        barrier.wait()
        for _ in range(200):
            with session.lock:
                session[Total].seed(Total(total_of(session) + 1))

    threads = [threading.Thread(target=double_or_start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert total_of(session) == 800


def test_ids_are_counters_under_the_session_id() -> None:
    session = make_session("talk")

    ids = [session.snapshot().snapshot_id, session.fork().session_id, session.snapshot().snapshot_id]

    assert all(name.startswith("talk/") for name in ids)
    assert len(set(ids)) == 3
    assert ids == [make_session("talk").snapshot().snapshot_id, *ids[1:]]


def test_a_session_generates_its_id_once_if_none_is_given() -> None:
    names = iter(["first", "second"])

    session = Session(registry=Registry.empty(), new_id=lambda: next(names))
    session.snapshot()
    session.fork()

    assert session.session_id == "first"
    assert next(names) == "second"


def test_sessions_without_ids_get_different_ones() -> None:
    assert Session(registry=Registry.empty()).session_id != Session(registry=Registry.empty()).session_id


@pytest.mark.parametrize(("cause", "error"), [(5, TypeError), (b"x", TypeError), ("\ud800", ValueError)])
def test_a_cause_is_text_that_a_file_can_hold(cause: object, error: type[Exception]) -> None:
    session = worked_session()
    before = everything(session)

    for step in (
        lambda: session.dispatch(Added(1), cause=cause),  # type: ignore[arg-type]  # the point of this test
        lambda: session.rollback("here", cause=cause),  # type: ignore[call-overload]
        lambda: session.merge(session.fork(), cause=cause),  # type: ignore[call-overload]
        lambda: session.transaction(cause=cause).__enter__(),  # type: ignore[arg-type]
        lambda: session.snapshot(cause),  # type: ignore[arg-type]
    ):
        with pytest.raises(error):
            step()
        assert everything(session) == before


def test_a_clock_of_seconds_is_refused_with_a_remedy() -> None:
    session = Session(registry=Registry.empty(), clock=lambda: 1.5)  # type: ignore[arg-type, return-value]

    with pytest.raises(TypeError, match=r"integer nanoseconds, such as time\.time_ns"):
        session.dispatch(Added(1))

    assert len(session.records) == 0
