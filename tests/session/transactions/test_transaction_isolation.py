"""A transaction belongs to the context that opened it: others neither join it nor are undone by it."""

from __future__ import annotations

import threading

import pytest

from tests.session.ledger import Added, Noted, Put, elsewhere, make_session, shelf_of, total_of
from weakfs import Session


def test_others_do_not_see_a_transactions_changes_before_it_ends() -> None:
    session = make_session()
    seen: list[object] = []

    with session.transaction():
        session.dispatch(Added(1))
        session.snapshot("inside")
        elsewhere(lambda: seen.extend([total_of(session), session.seq, len(session.records), session.snapshots]))
    elsewhere(lambda: seen.append(total_of(session)))

    assert seen == [0, 0, 0, (), 1]


def test_events_dispatched_by_another_thread_are_not_undone() -> None:
    session = make_session()

    with pytest.raises(LookupError), session.transaction():
        session.dispatch(Added(1))
        elsewhere(lambda: session.dispatch(Put("theirs", 1)))
        raise LookupError

    assert (total_of(session), shelf_of(session)) == (0, {"theirs": 1})


def test_events_dispatched_by_another_thread_are_not_visible_inside() -> None:
    session = make_session()

    with session.transaction():
        elsewhere(lambda: session.dispatch(Put("theirs", 1)))
        assert shelf_of(session) == {}

    assert shelf_of(session) == {"theirs": 1}


def test_the_changes_of_both_are_present_in_the_end() -> None:
    session = make_session()

    with session.transaction(cause="ours"):
        session.dispatch(Added(1))
        elsewhere(lambda: session.dispatch(Put("theirs", 1)))
        session.dispatch(Added(1))

    assert (total_of(session), shelf_of(session)) == (2, {"theirs": 1})
    assert [record.seq for record in session.records] == list(range(1, session.seq + 1))


def test_another_threads_transaction_is_separate() -> None:
    session = make_session()

    def fail_elsewhere() -> None:
        with pytest.raises(LookupError), session.transaction():
            session.dispatch(Put("theirs", 1))
            raise LookupError

    with session.transaction():
        session.dispatch(Added(1))
        elsewhere(fail_elsewhere)
        session.dispatch(Added(1))

    assert (total_of(session), shelf_of(session)) == (2, {})


@pytest.mark.parametrize("fails", [False, True])
def test_a_snapshot_that_another_thread_takes_meanwhile_is_kept(fails: bool) -> None:
    session = make_session()

    def work() -> None:
        with session.transaction():
            session.dispatch(Added(1))
            session.snapshot("inside")
            elsewhere(lambda: session.snapshot("outside"))
            if fails:
                raise LookupError

    if fails:
        with pytest.raises(LookupError):
            work()
    else:
        work()

    assert {snapshot.tag for snapshot in session.snapshots} == ({"outside"} if fails else {"inside", "outside"})
    session.rollback("outside")
    assert total_of(session) == 0


@pytest.mark.parametrize("moves", [False, True])
def test_a_snapshot_that_another_thread_drops_meanwhile_stays_dropped(moves: bool) -> None:
    session = make_session()
    session.snapshot("old")

    def drop() -> None:
        session.drop_snapshot("old")
        if moves:
            session.dispatch(Noted("dropped"))

    with session.transaction():
        session.dispatch(Added(1))
        elsewhere(drop)

    assert session.snapshots == ()


@pytest.mark.parametrize("moves", [False, True])
def test_a_snapshot_dropped_inside_is_gone_even_after_concurrent_changes(moves: bool) -> None:
    session = make_session()
    session.snapshot("old")

    with session.transaction():
        session.drop_snapshot("old")
        if moves:
            elsewhere(lambda: session.dispatch(Added(1)))

    assert session.snapshots == ()


def test_the_lock_is_not_held_while_a_transaction_is_open() -> None:
    session = make_session()
    done = threading.Event()

    def work() -> None:
        with session.lock:
            session.dispatch(Added(1))
        done.set()

    with session.transaction():
        session.dispatch(Noted("inside"))
        threading.Thread(target=work).start()
        assert done.wait(timeout=60)


def test_a_fork_is_independent_of_an_open_transaction() -> None:
    session = make_session()
    fork = session.fork()

    with pytest.raises(LookupError), session.transaction():
        fork.dispatch(Added(1))
        raise LookupError

    assert (total_of(session), total_of(fork)) == (0, 1)


def test_a_fork_made_inside_starts_from_the_state_inside() -> None:
    session: Session = make_session()

    with session.transaction():
        session.dispatch(Added(1))
        fork = session.fork()
        fork.dispatch(Put("a", 1))
        assert total_of(fork) == 1
        session.merge(fork)

    assert (total_of(session), shelf_of(session)) == (1, {"a": 1})
