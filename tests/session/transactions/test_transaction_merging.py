"""The end of a transaction during which others changed the session: merged three-way, or refused."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.session.ledger import (
    Added,
    Noted,
    Put,
    Taken,
    Total,
    make_session,
    notes_of,
    shelf_of,
    total_of,
)
from weakfs import MergeConflict, Session
from weakfs.session import Merged, RolledBack


def elsewhere(work: Callable[[], object]) -> None:
    """Do something in another thread, outside of any transaction here, and wait for it."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_changes_to_different_things_are_merged() -> None:
    session = make_session()
    session.dispatch(Put("old", 0))

    with session.transaction(cause="call"):
        session.dispatch(Put("ours", 1))
        session.dispatch(Taken("old"))
        elsewhere(lambda: session.dispatch(Put("theirs", 2)))

    assert shelf_of(session) == {"ours": 1, "theirs": 2}


def test_the_records_of_the_transaction_follow_a_merge_record() -> None:
    session = make_session()

    with session.transaction(cause="call"):
        session.dispatch(Put("ours", 1))
        elsewhere(lambda: session.dispatch(Added(1)))

    records = list(session.records)
    assert [type(record.event) for record in records] == [Added, Merged, Put]
    assert [record.cause for record in records] == [None, "call", "call"]
    assert [record.seq for record in records] == [1, 2, 3]


def test_a_conflict_rolls_the_transaction_back_and_says_what_conflicts() -> None:
    session = make_session()

    with pytest.raises(MergeConflict) as caught, session.transaction():
        session.dispatch(Put("a", 1))
        session.dispatch(Put("b", 1))
        session.dispatch(Put("free", 1))
        elsewhere(lambda: session.dispatch(Put("a", 2)))
        elsewhere(lambda: session.dispatch(Put("b", 2)))

    assert caught.value.paths == ("a", "b")
    assert shelf_of(session) == {"a": 2, "b": 2}


def test_a_slice_without_a_merge_function_conflicts_as_a_whole() -> None:
    session = make_session()

    with pytest.raises(MergeConflict, match="ledger/total") as caught, session.transaction():
        session.dispatch(Added(1))
        elsewhere(lambda: session.dispatch(Added(2)))

    assert caught.value.paths == ("ledger/total",)
    assert total_of(session) == 2


def test_the_same_change_on_both_sides_is_not_a_conflict() -> None:
    session = make_session()

    with session.transaction():
        session.dispatch(Added(1))
        session.dispatch(Put("a", 1))
        elsewhere(lambda: session.dispatch(Added(1)))
        elsewhere(lambda: session.dispatch(Put("a", 1)))

    assert (total_of(session), shelf_of(session)) == (1, {"a": 1})


def test_log_slices_keep_the_events_of_a_conflicting_transaction() -> None:
    session = make_session()

    with pytest.raises(MergeConflict), session.transaction():
        session.dispatch(Added(1))
        session.dispatch(Noted("ours"))
        elsewhere(lambda: session.dispatch(Added(2)))
        elsewhere(lambda: session.dispatch(Noted("theirs")))

    assert notes_of(session) == ["theirs", "ours"]


def test_a_conflicting_transaction_is_recorded_with_its_rollback() -> None:
    session = make_session()

    with pytest.raises(MergeConflict), session.transaction(cause="call"):
        session.dispatch(Added(1))
        elsewhere(lambda: session.dispatch(Added(2)))

    assert [type(record.event) for record in session.records] == [Added, Merged, Added, RolledBack]
    assert [record.cause for record in session.records] == [None, "call", "call", "call"]
    assert [session.at(seq)[Total].latest() for seq in range(5)] == [Total(0), *[Total(2)] * 4]


def test_a_conflicting_transaction_can_be_repeated() -> None:
    session = make_session()
    attempts = 0

    while True:
        attempts += 1
        try:
            with session.transaction():
                seen = total_of(session)
                if attempts < 4:
                    elsewhere(lambda: session.dispatch(Added(1)))
                session[Total].seed(Total(seen + 10))
        except MergeConflict:
            continue
        break

    assert attempts == 4
    assert total_of(session) == 13


def test_log_slices_of_both_sides_are_concatenated() -> None:
    session = make_session()
    session.dispatch(Noted("before"))

    with session.transaction():
        session.dispatch(Noted("ours"))
        elsewhere(lambda: session.dispatch(Noted("theirs")))

    assert notes_of(session) == ["before", "theirs", "ours"]


def test_a_failed_transaction_is_undone_and_the_work_of_others_stays() -> None:
    session = make_session()

    with pytest.raises(LookupError), session.transaction():
        session.dispatch(Added(1))
        session.dispatch(Noted("ours"))
        elsewhere(lambda: session.dispatch(Added(2)))
        elsewhere(lambda: session.dispatch(Noted("theirs")))
        raise LookupError

    assert total_of(session) == 2
    assert notes_of(session) == ["theirs", "ours"]


def test_an_inner_transaction_joins_the_outer_one_before_the_merge() -> None:
    session = make_session()

    with session.transaction():
        session.dispatch(Put("outer", 1))
        with session.transaction():
            session.dispatch(Put("inner", 1))
            elsewhere(lambda: session.dispatch(Put("theirs", 1)))
        assert shelf_of(session) == {"outer": 1, "inner": 1}

    assert shelf_of(session) == {"outer": 1, "inner": 1, "theirs": 1}


def test_a_rollback_inside_is_merged_like_any_change() -> None:
    session = make_session()
    session.dispatch(Added(5))
    session.dispatch(Put("a", 1))

    with session.transaction():
        session.rollback(0)
        elsewhere(lambda: session.dispatch(Noted("theirs")))

    assert (total_of(session), shelf_of(session)) == (0, {})


def test_a_concurrent_rollback_by_others_is_merged_too() -> None:
    session = make_session()
    session.dispatch(Added(5))

    with session.transaction():
        session.dispatch(Put("ours", 1))
        elsewhere(lambda: session.rollback(0))

    assert (total_of(session), shelf_of(session)) == (0, {"ours": 1})


def test_a_snapshot_taken_inside_restores_the_state_inside() -> None:
    session = make_session()

    with session.transaction():
        session.dispatch(Put("ours", 1))
        session.snapshot("inside")
        session.dispatch(Put("more", 1))
        elsewhere(lambda: session.dispatch(Put("theirs", 1)))
    session.rollback("inside")

    assert shelf_of(session) == {"ours": 1}
    assert session.snapshots[0].seq <= session.seq


def test_a_read_only_transaction_leaves_no_record() -> None:
    session = make_session()

    with session.transaction():
        total_of(session)
        elsewhere(lambda: session.dispatch(Added(1)))

    assert [type(record.event) for record in session.records] == [Added]


def test_a_log_slice_cleared_inside_stays_cleared_even_if_the_transaction_fails() -> None:
    session = make_session()
    session.dispatch(Noted("before"))

    with pytest.raises(LookupError, match="ours"), session.transaction():
        session[Noted].clear()
        session.dispatch(Added(1))
        elsewhere(lambda: session.dispatch(Noted("theirs")))
        raise LookupError("ours")

    assert total_of(session) == 0
    assert notes_of(session) == []
    assert Noted("theirs") in [record.event for record in session.records]


def test_a_fork_merged_inside_a_failed_transaction_can_be_merged_again() -> None:
    session = make_session()
    fork = session.fork()
    fork.dispatch(Added(3))
    fork.dispatch(Noted("fork"))

    with pytest.raises(LookupError), session.transaction():
        session.merge(fork)
        assert total_of(session) == 3
        raise LookupError
    assert total_of(session) == 0
    session.merge(fork)

    assert total_of(session) == 3


def test_a_fork_merged_inside_a_conflicting_transaction_can_be_merged_again() -> None:
    session = make_session()
    fork = session.fork()
    fork.dispatch(Put("fork", 3))

    with pytest.raises(MergeConflict), session.transaction():
        session.dispatch(Added(1))
        session.merge(fork)
        elsewhere(lambda: session.dispatch(Added(2)))
    with session.transaction():
        session.dispatch(Added(1))
        session.merge(fork)

    assert (total_of(session), shelf_of(session)) == (3, {"fork": 3})


def test_transactions_of_two_threads_that_interleave_both_take_effect() -> None:
    session = make_session()
    inside, go_on = threading.Event(), threading.Event()

    def other() -> None:
        with session.transaction(cause="other"):
            session.dispatch(Put("other", 1))
            inside.set()
            go_on.wait(timeout=60)
            session.dispatch(Put("other", 2))

    thread = threading.Thread(target=other)
    with session.transaction(cause="own"):
        session.dispatch(Put("own", 1))
        thread.start()
        inside.wait(timeout=60)
    go_on.set()
    thread.join()

    assert shelf_of(session) == {"own": 1, "other": 2}
    assert {record.cause for record in session.records} == {"own", "other"}


def test_history_is_correct_after_many_merged_transactions() -> None:
    session: Session = make_session()
    expected: list[tuple[str, ...]] = [()]

    for number in range(30):
        with session.transaction():
            session.dispatch(Noted(f"inside {number}"))
            elsewhere(lambda number=number: session.dispatch(Noted(f"aside {number}")))  # type: ignore[misc]
        before = expected[-1]
        aside = (*before, f"aside {number}")
        expected += [aside, aside, (*aside, f"inside {number}")]

    assert [tuple(note.text for note in session.at(seq)[Noted].all()) for seq in range(session.seq + 1)] == expected
