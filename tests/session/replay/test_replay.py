"""Replaying recorded events: the same slices, the same records, and no notifications."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.session.external.fakes import FakeExternal
from tests.session.ledger import (
    Added,
    Broken,
    Clock,
    Noted,
    Put,
    Shelf,
    Taken,
    Total,
    install_ledger,
    make_session,
    notes_of,
    shelf_of,
    storied_session,
    total_of,
)
from weakfs import Record, Registry, Session, SessionClosed, SessionError, reducer
from weakfs.session import Merged, RolledBack, UnknownSnapshot, UnknownType, replace_latest_by, upsert_by


def same(one: Session, other: Session) -> bool:
    return (
        one[Total].all() == other[Total].all()
        and shelf_of(one) == shelf_of(other)
        and notes_of(one) == notes_of(other)
        and list(one.records) == list(other.records)
    )


def test_a_new_session_that_replays_all_records_is_the_same() -> None:
    session = storied_session()

    again = make_session("again")
    again.replay(session.records)

    assert same(session, again)


def test_records_keep_their_times_and_causes() -> None:
    session = storied_session()
    again = install_ledger(Session(registry=Registry.empty(), clock=Clock(start=10**6)))

    again.replay(session.records)

    assert [(record.at, record.cause) for record in again.records] == [
        (record.at, record.cause) for record in session.records
    ]


def test_a_replayed_session_can_be_replayed_again() -> None:
    session = storied_session()
    second, third = make_session("second"), make_session("third")

    second.replay(session.records)
    third.replay(second.records)

    assert same(session, third)


def test_a_replayed_session_continues_as_the_original_would() -> None:
    session, again = storied_session(), make_session("again")
    again.replay(session.records)

    for one in (session, again):
        one.dispatch(Put("d", 4))
        one.rollback(3)
        one.dispatch(Added(1))

    assert total_of(session) == total_of(again)
    assert shelf_of(session) == shelf_of(again)


def test_records_can_be_replayed_in_two_parts() -> None:
    session = storied_session()
    cut = next(record.seq for record in session.records if isinstance(record.event, RolledBack))
    again = make_session("again")

    again.replay(session.records[:cut])
    again.replay(session.records.since(cut))

    assert same(session, again)


def test_records_of_a_merge_can_also_be_replayed_in_two_parts() -> None:
    session = make_session()
    fork = session.fork()
    for amount in (1, 10, 100):
        fork.dispatch(Added(amount))
    session.dispatch(Noted("aside"))
    session.merge(fork)
    session.dispatch(Added(1000))
    cut = next(record.seq for record in session.records if isinstance(record.event, Merged)) + 1
    again = make_session("again")

    again.replay(session.records[:cut])
    again.replay(session.records.since(cut))

    assert same(session, again)
    assert [again.at(seq)[Total].all() for seq in range(again.seq)] == [
        session.at(seq)[Total].all() for seq in range(session.seq)
    ]


def test_subscribers_get_no_replayed_records() -> None:
    session, again = storied_session(), make_session("again")
    told: list[Record] = []
    again.subscribe(object, told.append)

    again.replay(session.records)
    new = again.dispatch(Added(1))

    assert told == [new]


def test_a_replay_touches_nothing_outside() -> None:
    session, again = storied_session(), make_session("again")
    outside = FakeExternal("disk", {"/a": "1"})
    again.attach(outside)

    again.replay(session.records)

    assert outside.files == {"/a": "1"}
    assert outside.calls == []


def test_a_record_that_cannot_be_reduced_leaves_the_session_as_it_was() -> None:
    def fail(value: object, event: object) -> object:
        raise ArithmeticError

    again = make_session("again")
    again.dispatch(Added(7))
    again[Total].register(Broken, fail)

    with pytest.raises(ArithmeticError):
        again.replay([Record(2, 1, Added(1), None), Record(3, 2, Broken(), None)])

    assert total_of(again) == 7
    assert len(again.records) == 1


def test_a_slice_that_is_not_installed_is_named_with_the_remedy() -> None:
    session = make_session()
    session[Total].seed(Total(1))
    bare = Session(registry=Registry.empty().with_types(Total))

    with pytest.raises(UnknownType, match=r"ledger/total.*session\.install"):
        bare.replay(session.records)

    assert len(bare.records) == 0


def test_slices_known_only_from_records_do_not_prevent_a_merge() -> None:
    session = make_session()
    session.dispatch(Added(1))
    session.rollback(1)
    bare = Session(registry=Registry.empty().with_types(Added))
    bare.replay(session.records)

    fork = bare.fork()
    fork.install(Put).append(Put("a", 1))
    fork.rollback(0)
    bare.merge(fork)

    assert bare[Put].all() == ()


def test_a_closed_session_replays_nothing() -> None:
    session = make_session()
    session.close()

    with pytest.raises(SessionClosed):
        session.replay(storied_session().records)


def test_a_replay_inside_a_failing_transaction_is_undone() -> None:
    session = make_session()

    with pytest.raises(LookupError), session.transaction():
        session.replay([Record(1, 1, Added(4), None)])
        assert total_of(session) == 4
        raise LookupError

    assert total_of(session) == 0


@pytest.mark.parametrize("make", [upsert_by, replace_latest_by])
def test_keyed_log_slices_that_were_merged_replay_to_what_they_were(make: Callable[..., object]) -> None:
    def session_with_keys(name: str) -> Session:
        session = Session(session_id=name, registry=Registry.empty(), clock=Clock())
        session.install(Put, kind="log").register(Put, make(lambda put: put.key))  # type: ignore[arg-type]
        return session

    session = session_with_keys("s")
    fork = session.fork()
    fork.dispatch(Put("a", 1))
    session.dispatch(Put("a", 2))
    session.merge(fork)

    again = session_with_keys("again")
    again.replay(session.records)

    assert again[Put].all() == session[Put].all()


def test_a_log_of_merges_replays_to_what_it_was() -> None:
    from attrs import frozen

    @frozen
    class Joins:
        forks: tuple[str, ...] = ()

        @reducer(on=Merged)
        def joined(self, event: Merged) -> Joins:
            return Joins((*self.forks, event.fork))

    def session_with_joins(name: str) -> Session:
        session = make_session(name)
        session.install(Joins, kind="log", initial=Joins)
        return session

    session = session_with_joins("s")
    fork = session.fork()
    fork.dispatch(Added(1))
    session.merge(fork)
    again = session_with_joins("again")
    again.replay(session.records)

    assert session[Joins].latest() == again[Joins].latest() == Joins((fork.session_id,))


def test_changes_are_refused_until_a_partly_replayed_merge_is_complete() -> None:
    session = make_session()
    fork = session.fork()
    for number in range(3):
        fork.dispatch(Put(str(number), number))
    session.merge(fork)
    again = make_session("again")
    again.replay(session.records[:2])

    for step in (
        lambda: again.dispatch(Added(5)),
        lambda: again[Total].seed(Total(5)),
        lambda: again.rollback(0),
        lambda: again.merge(again.fork()),
        lambda: again.compact(keep=0),
    ):
        with pytest.raises(SessionError, match="replay the 2 that follow first"):
            step()
    assert len(again.records) == 2

    again.replay(session.records.since(2))
    again.dispatch(Added(5))
    assert (total_of(again), shelf_of(again)) == (5, {"0": 0, "1": 1, "2": 2})


def test_a_session_that_was_saved_is_replayed_from_the_first_record_to_the_same_bytes(tmp_path: Path) -> None:
    storied_session().save(tmp_path / "s.json")
    types = (Added, Noted, Put, Taken, Total, Shelf)
    session = install_ledger(Session.load(tmp_path / "s.json", registry=Registry.empty().with_types(*types)))

    session.replayed().save(tmp_path / "again.json")

    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "s.json").read_bytes()


def test_snapshots_are_replayed_and_can_be_rolled_back_to() -> None:
    session, again = storied_session(), make_session("again")

    again.replay(session.records)

    assert again.snapshots == session.snapshots
    again.rollback("s")
    session.rollback("s")
    assert shelf_of(again) == shelf_of(session) == {}


def test_a_snapshot_of_a_fork_is_replayed_with_the_state_of_the_fork() -> None:
    session = make_session()
    fork = session.fork()
    fork.dispatch(Added(1))
    fork.snapshot("in fork")
    fork.dispatch(Added(1))
    session.dispatch(Put("a", 1))
    session.merge(fork)

    again = session.replayed()

    view = again.at("in fork")
    assert (view[Total].latest(), view[Shelf].latest()) == (Total(1), Shelf())


def test_ids_continue_after_those_of_the_original_session() -> None:
    session = storied_session()
    again = session.replayed()

    assert again.next_id("call") == session.next_id("call")
    assert again.snapshot().snapshot_id == session.snapshot().snapshot_id


def test_a_replay_reads_no_clock_and_generates_no_id() -> None:
    def never() -> int:
        raise AssertionError

    session = storied_session()
    again = install_ledger(Session(session_id="again", registry=Registry.empty(), clock=never))

    again.replay(session.records)

    assert same(session, again)
    assert again.next_id("x") == "again/x1"


def test_a_compacted_session_is_replayed_from_its_earliest_state() -> None:
    session = storied_session()
    session.compact(keep=3)
    again = make_session("again")

    again.replay(session.records)

    assert same(session, again)
    first = session.seq - 3
    for seq in range(first, session.seq + 1):
        assert again.at(seq)[Total].all() == session.at(seq)[Total].all()
    with pytest.raises(UnknownSnapshot):
        again.at(first - 1)
    again.rollback("s")
    assert total_of(again) == 50


@pytest.mark.parametrize("keep", range(12))
def test_a_session_may_be_compacted_anywhere(keep: int) -> None:
    session = storied_session()
    session.compact(keep=keep)

    assert same(session.replayed(), session)


def test_records_that_begin_later_are_refused_without_the_state_before_them() -> None:
    session = storied_session()
    session.compact(keep=3)
    again = make_session("again")

    with pytest.raises(SessionError, match=r"record 1 comes next.*pass session\.records itself"):
        again.replay(list(session.records))

    assert again.seq == 0


def test_a_compacted_session_is_not_replayed_inside_a_transaction() -> None:
    session = storied_session()
    session.compact(keep=3)
    again = make_session("again")

    with pytest.raises(SessionError, match="comes next"), again.transaction():
        again.replay(session.records)

    assert again.seq == 0


def test_a_slice_from_before_the_first_record_must_be_installed() -> None:
    session = storied_session()
    session.compact(keep=0)
    bare = Session(registry=Registry.empty())

    with pytest.raises(UnknownType, match=r"slice 'ledger/.*session\.install"):
        bare.replay(session.records)

    assert bare.seq == 0


def test_a_merge_with_a_negative_number_of_records_counts_as_empty() -> None:
    session = make_session()
    session.replay([Record(1, 1, Merged("x/f1", 0, -5, session._table("state")), None)])

    session.dispatch(Added(1))

    assert total_of(session) == 1


def test_a_replayed_session_has_no_attached_filesystems() -> None:
    session = make_session()
    outside = FakeExternal("disk", {"/a": "1"})
    session.attach(outside)
    session.dispatch(Added(1))
    session.snapshot("with disk")
    session.rollback("with disk")
    outside.files["/a"] = "2"
    outside.calls.clear()

    again = session.replayed()

    assert again.attached == ()
    assert outside.files == {"/a": "2"}
    assert outside.calls == []
    with pytest.raises(SessionError, match="not attached"):
        again.rollback("with disk")
