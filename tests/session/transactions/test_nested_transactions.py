"""Nested transactions: each undoes its own changes, and the outer one undoes all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.session.ledger import Added, Noted, Put, Total, make_session, notes_of, shelf_of, total_of
from weakfs import Session, SessionError


def events(session: Session) -> list[str]:
    return [type(record.event).__name__ for record in session.records]


def test_an_inner_transaction_inherits_the_cause_or_has_its_own() -> None:
    session = make_session()

    with session.transaction(cause="outer"):
        with session.transaction():
            session.dispatch(Added(1))
        with session.transaction(cause="inner"):
            session.dispatch(Added(1))
        session.dispatch(Added(1))

    assert [record.cause for record in session.records] == ["outer", "inner", "outer"]


def test_successful_inner_and_outer_transactions_both_stay() -> None:
    session = make_session()

    with session.transaction():
        session.dispatch(Added(1))
        with session.transaction():
            session.dispatch(Added(10))
            assert total_of(session) == 11
        session.dispatch(Added(100))

    assert total_of(session) == 111
    assert events(session) == ["Added"] * 3


def test_an_inner_failure_undoes_the_inner_work_only() -> None:
    session = make_session()

    with session.transaction():
        session.dispatch(Added(1))
        with pytest.raises(LookupError), session.transaction():
            session.dispatch(Added(10))
            raise LookupError
        assert total_of(session) == 1
        session.dispatch(Added(100))

    assert total_of(session) == 101
    assert events(session) == ["Added", "Added", "RolledBack", "Added"]


def test_an_outer_failure_undoes_the_inner_work_too() -> None:
    session = make_session()

    with pytest.raises(LookupError), session.transaction():
        session.dispatch(Added(1))
        with session.transaction():
            session.dispatch(Added(10))
            session.dispatch(Noted("inner"))
        raise LookupError

    assert total_of(session) == 0
    assert notes_of(session) == ["inner"]
    assert events(session) == ["Added", "Added", "Noted", "RolledBack"]


def test_an_exception_that_passes_through_three_transactions_undoes_all() -> None:
    session = make_session()

    with pytest.raises(LookupError), session.transaction(), session.transaction(), session.transaction():
        session.dispatch(Added(1))
        raise LookupError

    assert total_of(session) == 0
    assert [session.at(seq)[Total].latest() for seq in range(session.seq + 1)][1] == Total(1)


def test_many_levels_of_nesting() -> None:
    session = make_session()

    def descend(level: int) -> None:
        if level:
            with session.transaction():
                session.dispatch(Added(1))
                descend(level - 1)

    descend(50)

    assert total_of(session) == 50


def test_transactions_that_end_out_of_order_lose_nothing_silently() -> None:
    session = make_session()

    def work(amount: int) -> Iterator[None]:
        with session.transaction():
            session.dispatch(Added(amount))
            yield
            session.dispatch(Added(amount))
            yield

    first, second = work(1), work(10)
    next(first)
    next(second)
    next(first)
    try:
        next(first, None)
        next(second)
        next(second, None)
    except SessionError:
        pass  # refusing to end the outer one first would also be correct
    else:
        assert total_of(session) == 22
    session.dispatch(Put("after", 1))

    assert shelf_of(session) == {"after": 1}


def test_transactions_of_two_sessions_do_not_mix() -> None:
    one, other = make_session("one"), make_session("other")

    with pytest.raises(LookupError), one.transaction(), other.transaction():
        one.dispatch(Added(1))
        other.dispatch(Added(2))
        assert (total_of(one), total_of(other)) == (1, 2)
        raise LookupError
    with one.transaction(), pytest.raises(LookupError), other.transaction():
        other.dispatch(Added(2))
        one.dispatch(Added(1))
        raise LookupError

    assert (total_of(one), total_of(other)) == (1, 0)
