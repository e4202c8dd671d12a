"""Forks: independent sessions that start from the state of another, and can be merged into it."""

from __future__ import annotations

import pytest

from tests.session.ledger import Added, Noted, Put, Total, install_ledger, make_session, notes_of, shelf_of, total_of
from weakfs import Registry, Session, SessionClosed
from weakfs.session import append_all


def test_a_fork_starts_from_the_current_state_of_the_session() -> None:
    session = make_session()
    session.dispatch(Added(1))
    session.dispatch(Noted("n"))
    snapshot = session.snapshot("s")

    fork = session.fork()

    assert (total_of(fork), notes_of(fork), fork.seq) == (1, ["n"], 2)
    assert list(fork.records) == list(session.records)
    assert fork.snapshots == (snapshot,)


def test_a_fork_has_an_id_below_that_of_the_session_and_the_given_name() -> None:
    session = make_session("talk")

    ids = [session.fork("call").session_id, session.fork("call").session_id, session.fork().session_id]

    assert all(name.startswith("talk/") for name in ids)
    assert all("call" in name for name in ids[:2])
    assert len(set(ids)) == 3


def test_a_fork_of_forks_knows_the_session_that_it_comes_from() -> None:
    session = make_session("talk")

    assert session.fork().fork().fork().origin_id == "talk"


def test_neither_side_sees_changes_by_the_other() -> None:
    session = make_session()
    fork = session.fork()

    fork.dispatch(Added(1))
    session.dispatch(Added(10))
    session[Noted].append(Noted("ours"))
    fork[Noted].append(Noted("theirs"))

    assert (total_of(session), notes_of(session)) == (10, ["ours"])
    assert (total_of(fork), notes_of(fork)) == (1, ["theirs"])


def test_forks_of_one_session_do_not_see_each_other() -> None:
    session = make_session()
    for number in range(300):
        session.dispatch(Noted(str(number)))
    forks = [session.fork() for _ in range(5)]

    for turn in range(300):
        for number, fork in enumerate(forks):
            fork.dispatch(Noted(f"{number}.{turn}"))

    assert len(session.records) == 300
    for number, fork in enumerate(forks):
        assert notes_of(fork)[300:] == [f"{number}.{turn}" for turn in range(300)]
        assert [record.event.text for record in fork.records.since(300)] == notes_of(fork)[300:]


def test_a_fork_can_roll_back_to_before_it_was_created() -> None:
    session = make_session()
    session.dispatch(Added(1))
    session.snapshot("one")
    session.dispatch(Added(1))
    fork = session.fork()

    fork.rollback("one")

    assert (total_of(fork), total_of(session)) == (1, 2)
    fork.rollback(0)
    assert total_of(fork) == 0


def test_snapshots_of_a_fork_are_its_own_until_it_is_merged() -> None:
    session = make_session()
    fork = session.fork()
    fork.dispatch(Added(1))
    snapshot = fork.snapshot("inside")
    assert [entry.snapshot_id for entry in session.snapshots] == []

    session.merge(fork)
    session.dispatch(Added(10))
    session.rollback("inside")

    assert [entry.snapshot_id for entry in session.snapshots] == [snapshot.snapshot_id]
    assert total_of(session) == 1


def test_merging_a_fork_keeps_snapshots_in_the_order_of_their_times() -> None:
    session = make_session()
    session.snapshot("t")
    session.snapshot("second")
    fork = session.fork()
    fork.dispatch(Added(7))
    fork.snapshot("t")
    session.merge(fork)
    session.snapshot("last")

    assert [snapshot.tag for snapshot in session.snapshots] == ["t", "second", "t", "last"]
    session.rollback("t")
    assert total_of(session) == 7


def test_ids_of_snapshots_and_forks_never_collide() -> None:
    session = make_session()
    ids: list[str] = []
    for _ in range(3):
        fork = session.fork()
        ids += [fork.session_id, fork.snapshot().snapshot_id, session.snapshot().snapshot_id]
        inner = fork.fork()
        ids += [inner.session_id, inner.snapshot().snapshot_id]

    assert len(set(ids)) == len(ids)


def test_names_that_end_in_digits_do_not_make_two_forks_with_one_id() -> None:
    session = make_session()
    session.fork()
    first = session.fork("x1")
    for _ in range(9):
        session.fork()
    second = session.fork("x")

    first.dispatch(Put("a", 1))
    first.snapshot("first")
    second.dispatch(Put("b", 2))
    second.snapshot("second")
    session.merge(first)
    session.merge(second)

    assert first.session_id != second.session_id
    assert [snapshot.tag for snapshot in session.snapshots] == ["first", "second"]


def test_a_slash_in_a_name_does_not_make_two_forks_with_one_id() -> None:
    session = make_session()
    fork = session.fork("x")
    fork.snapshot()
    inner = fork.fork("a")
    outer = session.fork("x1/a")

    assert inner.session_id == "s/x1/a2"
    assert outer.session_id == "s/x1-a2"


def test_a_fork_installs_slices_that_the_session_does_not_have() -> None:
    session = Session(session_id="s", registry=Registry.empty())
    fork = session.fork()

    install_ledger(fork).dispatch(Added(1))

    assert total_of(fork) == 1
    assert session[Total].latest() is None


def test_a_merge_installs_the_slices_that_the_fork_installed() -> None:
    session = Session(session_id="s", registry=Registry.empty())
    fork = session.fork()
    install_ledger(fork).dispatch(Added(1))

    session.merge(fork)
    session.dispatch(Added(1))
    session.dispatch(Noted("n"))

    assert total_of(session) == 2
    assert notes_of(session) == ["n"]


def test_a_merge_adds_the_forks_reducers_of_known_events() -> None:
    session = make_session()
    fork = session.fork()
    fork.install(Added, kind="log").register(Added, append_all)
    fork.dispatch(Added(1))

    session.merge(fork)
    session.dispatch(Added(2))

    assert session[Added].all() == (Added(1), Added(2))
    assert session.at(session.seq - 1)[Added].all() == (Added(1),)


def test_a_merge_keeps_reducers_that_the_session_registered_meanwhile() -> None:
    session = make_session()
    fork = session.fork()
    session.install(Added, kind="log").register(Added, append_all)
    fork.dispatch(Put("a", 1))

    session.merge(fork)
    session.dispatch(Added(2))

    assert session[Added].all() == (Added(2),)


def test_a_closed_fork_refuses_every_change_and_says_why() -> None:
    fork = make_session().fork()
    fork.dispatch(Added(1))
    fork.snapshot("s")

    fork.close("the call was cancelled")

    for step in (
        lambda: fork.dispatch(Added(1)),
        lambda: fork[Total].seed(Total(1)),
        lambda: fork[Total].append(Total(1)),
        lambda: fork[Total].clear(),
        lambda: fork.rollback(0),
        lambda: fork.snapshot(),
        lambda: fork.drop_snapshot("s"),
        lambda: fork.compact(keep=0),
        lambda: fork.fork(),
        lambda: fork.transaction().__enter__(),
        lambda: fork.replay([]),
    ):
        with pytest.raises(SessionClosed, match="the call was cancelled; use its parent or a new fork"):
            step()


def test_a_closed_fork_can_still_be_read() -> None:
    fork = make_session().fork()
    fork.dispatch(Added(1))

    fork.close()

    assert total_of(fork) == 1
    assert len(fork.records) == 1
    assert fork.at(0)[Total].latest() == Total(0)
    assert fork.snapshots == ()


def test_a_closed_fork_refuses_merges_of_its_own_forks() -> None:
    fork = make_session().fork()
    inner = fork.fork()
    inner.dispatch(Added(1))
    fork.close()

    with pytest.raises(SessionClosed):
        fork.merge(inner)


def test_closing_a_fork_does_not_affect_the_session() -> None:
    session = make_session()
    fork = session.fork()

    fork.close()
    session.dispatch(Added(1))

    assert total_of(session) == 1
    assert shelf_of(session.fork()) == {}


def test_the_error_for_a_closed_session_is_also_a_runtime_error() -> None:
    session = make_session()
    session.close()

    with pytest.raises(RuntimeError, match="it was closed; open or load it again"):
        session.dispatch(Added(1))


def test_a_slice_that_is_a_log_in_the_fork_and_state_in_the_session_is_refused() -> None:
    session = make_session()
    fork = session.fork()
    fork.install(Put, kind="log").append(Put("a", 1))
    session.install(Put, kind="state")

    with pytest.raises(ValueError, match="log") as caught:
        session.merge(fork)

    assert "ledger/put" in str(caught.value) or "Put" in str(caught.value)
    assert len(session.records) == 0
