"""What merging does to LOG slices and records, and forks that are merged again or belong to other sessions."""

from __future__ import annotations

import pytest

from tests.session.ledger import (
    Added,
    Noted,
    Put,
    forked,
    make_session,
    notes_of,
    shelf_of,
    total_of,
)
from weakfs.session import Merged


def test_log_slices_are_concatenated() -> None:
    session, fork = forked(Noted("before"))
    fork.dispatch(Noted("theirs"))
    session.dispatch(Noted("ours"))

    session.merge(fork)

    assert notes_of(session) == ["before", "ours", "theirs"]


def test_log_slices_of_hundreds_of_values_are_concatenated() -> None:
    session, fork = forked(*(Noted(str(number)) for number in range(300)))
    for number in range(300):
        fork.dispatch(Noted(f"theirs {number}"))
        session.dispatch(Noted(f"ours {number}"))

    session.merge(fork)

    assert notes_of(session) == [
        *map(str, range(300)),
        *(f"ours {number}" for number in range(300)),
        *(f"theirs {number}" for number in range(300)),
    ]


@pytest.mark.parametrize("count", [1, 5, 300])
def test_a_log_slice_with_another_reducer_appends_the_events_of_the_fork(count: int) -> None:
    session = make_session()
    session.install(Put, kind="log").register(Added, lambda put, event: Put(put.key, event.by))
    for number in range(count):
        session[Put].append(Put(str(number), 0))
    fork = session.fork()
    fork.dispatch(Added(1))
    session[Put].append(Put("more", 0))

    session.merge(fork)

    assert session[Put].all()[count - 1 :] == (Put(str(count - 1), 0), Put("more", 1))
    assert session.at(session.seq)[Put].all() == session[Put].all()


def test_a_log_slice_that_the_fork_cleared_is_cleared() -> None:
    session, fork = forked(Noted("before"))
    fork[Noted].clear()
    fork.dispatch(Noted("theirs"))
    session.dispatch(Noted("ours"))

    session.merge(fork)

    assert notes_of(session) == ["theirs"]


def test_the_fork_s_records_are_appended_and_renumbered_with_their_causes_and_times() -> None:
    session, fork = forked(Added(1))
    fork.dispatch(Put("a", 1), cause="one")
    fork.dispatch(Put("b", 1))
    session.dispatch(Noted("ours"))
    theirs = list(fork.records.since(1))

    record = session.merge(fork, cause="joining")

    assert (record.seq, record.cause) == (3, "joining")
    appended = list(session.records.since(3))
    assert [later.seq for later in appended] == [4, 5]
    assert [(later.at, later.cause, later.event) for later in appended] == [
        (earlier.at, earlier.cause, earlier.event) for earlier in theirs
    ]


def test_merging_a_fork_that_did_nothing() -> None:
    session, fork = forked(Added(1))

    record = session.merge(fork)

    assert isinstance(record.event, Merged)
    assert record.event.count == 0
    assert total_of(session) == 1


def test_a_merge_is_undone_by_rolling_back_to_the_record_before_it() -> None:
    session, fork = forked(Added(1))
    fork.dispatch(Added(1))
    fork.dispatch(Put("a", 1))
    record = session.merge(fork)

    session.rollback(record.seq - 1)

    assert (total_of(session), shelf_of(session)) == (1, {})
    session.rollback(session.seq - 1)
    assert (total_of(session), shelf_of(session)) == (2, {"a": 1})


def test_a_fork_may_be_merged_repeatedly() -> None:
    session, fork = forked(Noted("0"))

    for number in range(1, 6):
        fork.dispatch(Put(f"theirs {number}", number))
        fork.dispatch(Noted(f"theirs {number}"))
        session.dispatch(Put(f"ours {number}", number))
        session.merge(fork)
        assert shelf_of(session) == {f"{side} {n}": n for n in range(1, number + 1) for side in ("ours", "theirs")}

    assert notes_of(session) == ["0", *(f"theirs {number}" for number in range(1, 6))]
    assert [record.event.text for record in session.records if isinstance(record.event, Noted)] == notes_of(session)


def test_a_second_merge_adds_only_what_is_new() -> None:
    session, fork = forked()
    fork.dispatch(Added(1))
    session.merge(fork)
    session.dispatch(Added(10))

    record = session.merge(fork)

    assert total_of(session) == 11
    assert isinstance(record.event, Merged)
    assert record.event.count == 0


def test_the_fork_continues_from_its_own_state_after_a_merge() -> None:
    session, fork = forked()
    fork.dispatch(Put("a", 1))
    session.dispatch(Put("b", 1))
    session.merge(fork)

    assert shelf_of(fork) == {"a": 1}
    fork.dispatch(Put("a", 2))
    session.merge(fork)
    assert shelf_of(session) == {"a": 2, "b": 1}


def test_a_fork_of_a_fork_is_merged_into_the_fork_and_then_into_the_session() -> None:
    session, fork = forked(Noted("0"))
    inner = fork.fork()
    inner.dispatch(Put("inner", 1), cause="deep")
    inner.dispatch(Noted("inner"))
    fork.dispatch(Noted("fork"))
    session.dispatch(Noted("session"))

    fork.merge(inner)
    session.merge(fork)

    assert shelf_of(session) == {"inner": 1}
    assert notes_of(session) == ["0", "session", "fork", "inner"]
    assert [session.at(seq)[Noted].all() for seq in range(session.seq + 1)][-1] == session[Noted].all()
    assert "deep" in [record.cause for record in session.records]


def test_several_forks_are_merged_one_after_another() -> None:
    session = make_session()
    forks = [session.fork() for _ in range(5)]
    for number, fork in enumerate(forks):
        fork.dispatch(Put(str(number), number))

    for fork in reversed(forks):
        session.merge(fork)

    assert shelf_of(session) == {str(number): number for number in range(5)}


def test_a_fork_is_merged_only_into_its_parent() -> None:
    session, fork = forked()
    inner = fork.fork()
    inner.dispatch(Added(1))
    sibling = session.fork()

    for other in (session, sibling, make_session("stranger")):
        with pytest.raises(
            ValueError, match=f"the first is not a fork of the second; merge it into '{fork.session_id}'"
        ):
            other.merge(inner)
        assert total_of(other) == 0


def test_a_parent_is_not_merged_into_its_fork() -> None:
    session, fork = forked()

    with pytest.raises(ValueError, match="cannot merge 's' into") as caught:
        fork.merge(session)

    assert "None" not in str(caught.value)


def test_another_session_with_the_same_id_is_not_the_parent() -> None:
    _, fork = forked()
    fork.dispatch(Added(1))
    namesake = make_session()

    with pytest.raises(ValueError, match="the first is not a fork of the second"):
        namesake.merge(fork)

    assert total_of(namesake) == 0
