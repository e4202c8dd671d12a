"""All or nothing: changes in a transaction stay if it succeeds, and are rolled back if an exception leaves it."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Generator

import pytest

from tests.session.ledger import Added, Broken, Noted, Put, Total, make_session, notes_of, shelf_of, total_of
from weakfs import Session, SessionClosed
from weakfs.session import RolledBack


def events(session: Session) -> list[str]:
    return [type(record.event).__name__ for record in session.records]


def test_changes_stay_if_the_transaction_succeeds() -> None:
    session = make_session()

    with session.transaction():
        session.dispatch(Added(1))
        session.dispatch(Put("a", 1))

    assert (total_of(session), shelf_of(session)) == (1, {"a": 1})
    assert events(session) == ["Added", "Put"]


def test_a_transaction_yields_the_session() -> None:
    session = make_session()

    with session.transaction() as inside:
        assert inside is session


def test_the_code_inside_sees_its_own_changes() -> None:
    session = make_session()

    with session.transaction():
        session.dispatch(Added(2))
        assert total_of(session) == 2
        assert session.seq == 1
        assert session.records[-1].event == Added(2)


@pytest.mark.parametrize(
    "error",
    [ValueError, Exception, BaseException, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError],
)
def test_any_exception_rolls_back_and_reaches_the_caller(error: type[BaseException]) -> None:
    session = make_session()
    session.dispatch(Added(1))
    raised = error("stop")

    with pytest.raises(error) as caught, session.transaction():
        session.dispatch(Added(10))
        session.dispatch(Put("a", 1))
        raise raised

    assert caught.value is raised
    assert (total_of(session), shelf_of(session)) == (1, {})


def test_a_reducer_that_raises_inside_rolls_back_what_came_before() -> None:
    def fail(total: Total, event: Broken) -> Total:
        raise ArithmeticError

    session = make_session()
    session[Total].register(Broken, fail)

    with pytest.raises(ArithmeticError), session.transaction():
        session.dispatch(Added(1))
        session.dispatch(Broken())

    assert total_of(session) == 0


def test_a_failure_handled_inside_rolls_nothing_back() -> None:
    def fail(total: Total, event: Broken) -> Total:
        raise ArithmeticError

    session = make_session()
    session[Total].register(Broken, fail)

    with session.transaction():
        session.dispatch(Added(1))
        with pytest.raises(ArithmeticError):
            session.dispatch(Broken())

    assert total_of(session) == 1


def test_the_records_of_a_failed_transaction_stay_followed_by_its_rollback() -> None:
    session = make_session()
    session.dispatch(Added(1))

    with pytest.raises(LookupError), session.transaction(cause="call-3"):
        session.dispatch(Added(10))
        session.dispatch(Noted("tried"))
        raise LookupError

    assert events(session) == ["Added", "Added", "Noted", "RolledBack"]
    last = session.records[-1]
    assert isinstance(last.event, RolledBack)
    assert (last.event.target, last.cause) == (1, "call-3")


def test_log_slices_keep_what_happened() -> None:
    session = make_session()

    with pytest.raises(LookupError), session.transaction():
        session.dispatch(Noted("tried"))
        raise LookupError

    assert notes_of(session) == ["tried"]


def test_a_failed_transaction_can_be_viewed_and_restored() -> None:
    session = make_session()
    with pytest.raises(LookupError), session.transaction():
        session.dispatch(Added(10))
        raise LookupError

    assert session.at(1)[Total].latest() == Total(10)
    session.rollback(session.seq - 1)

    assert total_of(session) == 10


def test_a_failed_transaction_that_did_nothing_leaves_no_record() -> None:
    session = make_session()

    with pytest.raises(LookupError), session.transaction():
        raise LookupError

    assert len(session.records) == 0


def test_an_empty_transaction_leaves_no_record() -> None:
    session = make_session()

    with session.transaction():
        pass

    assert len(session.records) == 0


def test_records_inside_take_the_cause_of_the_transaction_unless_they_name_one() -> None:
    session = make_session()

    with session.transaction(cause="call"):
        session.dispatch(Added(1))
        session.dispatch(Added(1), cause="own")
        session[Total].seed(Total(5))
        session.rollback(0)
    session.dispatch(Added(1))

    assert [record.cause for record in session.records] == ["call", "own", "call", "call", None]


def test_a_generator_that_is_closed_half_way_rolls_back() -> None:
    session = make_session()

    def work() -> Generator[int, None, None]:
        with session.transaction():
            session.dispatch(Added(1))
            yield 1
            session.dispatch(Added(1))

    steps = work()
    next(steps)
    steps.close()
    session.dispatch(Added(100))

    assert total_of(session) == 100


def test_a_snapshot_taken_inside_is_kept_if_the_transaction_succeeds() -> None:
    session = make_session()

    with session.transaction():
        session.dispatch(Added(1))
        session.snapshot("inside")
        session.dispatch(Added(1))
    session.rollback("inside")

    assert total_of(session) == 1


@pytest.mark.parametrize("with_records", [False, True])
def test_a_snapshot_taken_inside_a_failed_transaction_is_discarded(with_records: bool) -> None:
    session = make_session()
    kept = session.snapshot("kept")

    with pytest.raises(LookupError), session.transaction():
        if with_records:
            session.dispatch(Added(1))
        session.snapshot("inside")
        raise LookupError

    assert session.snapshots == (kept,)


@pytest.mark.parametrize("with_records", [False, True])
def test_a_snapshot_dropped_inside_a_failed_transaction_is_still_there(with_records: bool) -> None:
    session = make_session()
    kept = session.snapshot("kept")

    with pytest.raises(LookupError), session.transaction():
        if with_records:
            session.dispatch(Added(1))
        session.drop_snapshot("kept")
        assert session.snapshots == ()
        raise LookupError

    assert session.snapshots == (kept,)


def test_a_snapshot_dropped_inside_is_gone_if_the_transaction_succeeds() -> None:
    session = make_session()
    session.snapshot("kept")

    with session.transaction():
        session.drop_snapshot("kept")

    assert session.snapshots == ()


def test_a_transaction_can_roll_back_to_before_its_beginning() -> None:
    session = make_session()
    session.dispatch(Added(1))
    session.snapshot("before")
    session.dispatch(Added(1))

    with session.transaction():
        session.dispatch(Added(100))
        session.rollback("before")
        session.dispatch(Added(10))

    assert total_of(session) == 11


def test_rolling_back_inside_a_failed_transaction_is_undone_too() -> None:
    session = make_session()
    session.dispatch(Added(1))

    with pytest.raises(LookupError), session.transaction():
        session.rollback(0)
        raise LookupError

    assert total_of(session) == 1


def test_a_closed_session_cannot_begin_a_transaction() -> None:
    session = make_session()
    session.close("the call was cancelled")

    with pytest.raises(SessionClosed, match="the call was cancelled"), session.transaction():
        raise AssertionError("not reached")


def test_a_session_closed_during_a_transaction_gets_none_of_its_changes() -> None:
    session = make_session()

    with pytest.raises(SessionClosed), session.transaction():
        session.dispatch(Added(1))
        session.close("the call was cancelled")

    assert total_of(session) == 0


def test_a_finished_transaction_keeps_nothing_alive() -> None:
    session = make_session()
    held: list[weakref.ref[Total]] = []
    with pytest.raises(LookupError), session.transaction():
        total = Total(5)
        held.append(weakref.ref(total))
        session[Total].seed(total)
        del total
        raise LookupError
    session.compact(keep=0)
    gc.collect()

    assert held[0]() is None
