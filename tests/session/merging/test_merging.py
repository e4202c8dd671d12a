"""Merging a fork: three-way, slice by slice; all of it or nothing."""

from __future__ import annotations

import pytest

from tests.session.ledger import (
    Added,
    Noted,
    Put,
    Shelf,
    Taken,
    Total,
    forked,
    make_session,
    notes_of,
    shelf_of,
    total_of,
)
from weakfs import MergeConflict, Session, SessionError
from weakfs.session import Conflict


def everything(session: Session) -> object:
    return (total_of(session), shelf_of(session), notes_of(session), list(session.records), session.snapshots)


def test_changes_by_only_the_fork_are_merged() -> None:
    session, fork = forked(Added(1))
    fork.dispatch(Added(2))

    session.merge(fork)

    assert total_of(session) == 3


def test_changes_by_only_the_session_stay() -> None:
    session, fork = forked(Added(1))
    fork.dispatch(Put("a", 1))
    session.dispatch(Added(2))

    session.merge(fork)

    assert (total_of(session), shelf_of(session)) == (3, {"a": 1})


def test_changes_by_both_sides_are_merged_by_the_merge_function_of_the_slice() -> None:
    session, fork = forked(Put("a", 1), Put("b", 1))
    fork.dispatch(Taken("a"))
    fork.dispatch(Put("theirs", 1))
    session.dispatch(Put("b", 2))
    session.dispatch(Put("ours", 1))

    session.merge(fork)

    assert shelf_of(session) == {"b": 2, "ours": 1, "theirs": 1}


def test_the_same_change_on_both_sides_is_not_a_conflict() -> None:
    session, fork = forked()
    for side in (session, fork):
        side.dispatch(Added(4))
        side.dispatch(Put("a", 1))

    session.merge(fork)

    assert (total_of(session), shelf_of(session)) == (4, {"a": 1})


def test_a_change_that_was_undone_is_not_a_change() -> None:
    for changing, other in ((0, 1), (1, 0)):
        session, fork = forked(Added(5))
        sides = (session, fork)
        sides[changing].dispatch(Added(1))
        sides[changing].dispatch(Added(-1))
        sides[other].dispatch(Added(10))

        session.merge(fork)

        assert total_of(session) == 15


def test_a_conflict_lists_everything_and_changes_nothing() -> None:
    session, fork = forked(Noted("before"))
    for value, side in enumerate((session, fork)):
        side.dispatch(Added(value + 1))
        side.dispatch(Put("a", value))
        side.dispatch(Put("b", value))
        side.dispatch(Put(f"free {value}", 1))
    session.dispatch(Noted("after"))
    before, theirs = everything(session), everything(fork)

    with pytest.raises(MergeConflict) as caught:
        session.merge(fork)

    assert sorted(caught.value.paths) == ["a", "b", "ledger/total"]
    assert everything(session) == before
    assert everything(fork) == theirs


def test_the_message_of_a_conflict_names_things_and_a_remedy() -> None:
    session, fork = forked()
    for value, side in enumerate((session, fork)):
        for number in range(12):
            side.dispatch(Put(f"k{number:02}", value))

    with pytest.raises(MergeConflict, match=r"cannot merge: .*k00, .*and 2 more.*[Mm]ake the change again") as caught:
        session.merge(fork)

    assert len(caught.value.paths) == 12
    assert isinstance(caught.value, SessionError)


def test_a_fork_that_conflicted_can_be_merged_once_the_conflict_is_gone() -> None:
    session, fork = forked()
    fork.dispatch(Added(1))
    record = session.dispatch(Added(2))
    with pytest.raises(MergeConflict):
        session.merge(fork)

    session.rollback(record.seq - 1)
    session.merge(fork)

    assert total_of(session) == 1


def test_a_conflict_without_a_name_names_the_slice() -> None:
    def never(base: Total, ours: Total, theirs: Total) -> Total:
        raise Conflict

    session = make_session()
    session.install(Total, merge=never)
    fork = session.fork()
    fork.dispatch(Added(1))
    session.dispatch(Added(2))

    with pytest.raises(MergeConflict) as caught:
        session.merge(fork)

    assert caught.value.paths == ("ledger/total",)
    assert total_of(session) == 2


def test_any_other_exception_in_a_merge_function_changes_nothing() -> None:
    def broken(base: Total, ours: Total, theirs: Total) -> Total:
        raise ZeroDivisionError

    session = make_session()
    session.install(Total, merge=broken)
    fork = session.fork()
    fork.dispatch(Put("a", 1))
    fork.dispatch(Added(1))
    session.dispatch(Added(2))
    before = everything(session)

    with pytest.raises(ZeroDivisionError):
        session.merge(fork)

    assert everything(session) == before


def test_a_merge_function_gets_the_base_and_both_sides() -> None:
    def sums(base: Total, ours: Total, theirs: Total) -> Total:
        return Total(ours.value + theirs.value - base.value)

    session = make_session()
    session.install(Total, merge=sums)
    session.dispatch(Added(100))
    fork = session.fork()
    fork.dispatch(Added(10))
    session.dispatch(Added(1))

    session.merge(fork)

    assert total_of(session) == 111


def test_a_rollback_in_the_fork_is_merged_as_the_changes_that_it_made() -> None:
    session, fork = forked(Added(5), Put("a", 1))

    fork.rollback(0)
    session.merge(fork)

    assert (total_of(session), shelf_of(session)) == (0, {})


def test_a_rollback_in_the_fork_keeps_other_changes_by_the_session() -> None:
    session, fork = forked(Added(5), Put("a", 1))

    fork.rollback(1)
    session.dispatch(Put("b", 2))
    session.merge(fork)

    assert (total_of(session), shelf_of(session)) == (5, {"b": 2})


def test_a_rollback_in_the_fork_can_conflict_with_a_change_in_the_session() -> None:
    session, fork = forked(Added(5))

    fork.rollback(0)
    session.dispatch(Added(1))

    with pytest.raises(MergeConflict):
        session.merge(fork)


def test_a_concurrent_rollback_of_the_session_is_kept() -> None:
    session, fork = forked(Added(5), Put("a", 1))

    session.rollback(0)
    fork.dispatch(Noted("n"))
    session.merge(fork)

    assert (total_of(session), shelf_of(session), notes_of(session)) == (0, {}, ["n"])


def test_clearing_a_slice_in_the_fork_is_merged() -> None:
    session, fork = forked(Added(5))

    fork[Total].clear()
    session.merge(fork)

    assert session[Total].all() == ()


def test_older_values_of_a_slice_stay_when_the_latest_are_merged() -> None:
    session = make_session()
    session[Shelf].append(Shelf({"x": 1}))
    fork = session.fork()
    fork.dispatch(Put("theirs", 1))
    session.dispatch(Put("ours", 1))

    session.merge(fork)

    assert session[Shelf].all() == (Shelf({}), Shelf({"x": 1, "ours": 1, "theirs": 1}))


def test_older_values_that_differ_are_a_conflict() -> None:
    session, fork = forked(Put("a", 1))
    fork[Shelf].append(Shelf({"a": 2}))
    session.dispatch(Put("b", 1))

    with pytest.raises(MergeConflict) as caught:
        session.merge(fork)

    assert caught.value.paths == ("ledger/shelf",)


def test_clearing_a_slice_conflicts_with_a_change_to_it() -> None:
    for clearing in (0, 1):
        session, fork = forked(Put("a", 1))
        sides = (session, fork)
        sides[clearing][Shelf].clear()
        sides[1 - clearing].dispatch(Put("b", 1))

        with pytest.raises(MergeConflict) as caught:
            session.merge(fork)

        assert caught.value.paths == ("ledger/shelf",)


def test_recreating_a_slice_unchanged_does_not_conflict_with_clearing_it() -> None:
    for clears_fork in (False, True):
        session = make_session()
        session[Shelf].seed(Shelf({"a": 1}))
        fork = session.fork()
        clearing, other = (fork, session) if clears_fork else (session, fork)
        clearing[Shelf].clear()
        other[Shelf].seed(Shelf({"a": 1}))

        session.merge(fork)

        assert session[Shelf].all() == ()


def test_a_merge_function_that_returns_none_clears_the_slice() -> None:
    session = make_session()
    session.install(Total, merge=lambda base, ours, theirs: None)
    fork = session.fork()
    fork.dispatch(Added(1))
    session.dispatch(Added(2))

    session.merge(fork)

    assert session[Total].all() == ()
