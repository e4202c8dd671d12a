"""Snapshots, and rollbacks by snapshot, id, tag or record number."""

from __future__ import annotations

import gc
import weakref

import pytest

from tests.session.ledger import Added, Noted, Put, Shelf, Total, make_session, notes_of, shelf_of, total_of
from weakfs import Session, SessionSnapshot
from weakfs.session import UnknownSnapshot


def session_with_snapshot() -> tuple[Session, SessionSnapshot]:
    session = make_session()
    session.dispatch(Added(1))
    session.dispatch(Put("a", 1))
    snapshot = session.snapshot("start")
    session.dispatch(Added(10))
    session.dispatch(Put("a", 2))
    session.dispatch(Noted("later"))
    return session, snapshot


def test_a_snapshot_says_when_it_was_taken() -> None:
    session = make_session()
    session.dispatch(Added(1))

    snapshot = session.snapshot("one")

    assert (snapshot.seq, snapshot.tag) == (1, "one")
    assert snapshot.at > session.records[-1].at
    assert session.snapshots == (snapshot,)


def test_a_snapshot_adds_no_record_and_changes_nothing() -> None:
    session = make_session()
    session.dispatch(Added(1))

    session.snapshot()

    assert len(session.records) == 1
    assert total_of(session) == 1


def test_rollback_to_a_snapshot() -> None:
    session, snapshot = session_with_snapshot()

    session.rollback(snapshot)

    assert (total_of(session), shelf_of(session)) == (1, {"a": 1})


def test_rollback_to_the_id_of_a_snapshot() -> None:
    session, snapshot = session_with_snapshot()

    session.rollback(snapshot.snapshot_id)

    assert (total_of(session), shelf_of(session)) == (1, {"a": 1})


def test_rollback_to_the_tag_of_a_snapshot() -> None:
    session, _ = session_with_snapshot()

    session.rollback("start")

    assert (total_of(session), shelf_of(session)) == (1, {"a": 1})


@pytest.mark.parametrize(("seq", "total", "shelf"), [(0, 0, {}), (1, 1, {}), (2, 1, {"a": 1}), (3, 11, {"a": 1})])
def test_rollback_to_a_record_number(seq: int, total: int, shelf: dict[str, int]) -> None:
    session, _ = session_with_snapshot()

    session.rollback(seq)

    assert (total_of(session), shelf_of(session)) == (total, shelf)


def test_rollback_restores_the_same_value_objects() -> None:
    session, snapshot = session_with_snapshot()
    before = session.at(snapshot)[Shelf].latest()

    session.rollback(snapshot)

    assert session[Shelf].latest() is before


def test_log_slices_keep_what_happened() -> None:
    session, snapshot = session_with_snapshot()

    session.rollback(snapshot)
    session.rollback(0)

    assert notes_of(session) == ["later"]


def test_rolling_back_never_erases_records() -> None:
    session, snapshot = session_with_snapshot()
    before = list(session.records)

    record = session.rollback(snapshot, cause="user")

    assert list(session.records) == [*before, record]


def test_a_rollback_is_undone_by_rolling_back_to_the_record_before_it() -> None:
    session, snapshot = session_with_snapshot()

    record = session.rollback(snapshot)
    session.rollback(record.seq - 1)

    assert (total_of(session), shelf_of(session)) == (11, {"a": 2})


def test_undoing_can_itself_be_undone() -> None:
    session, snapshot = session_with_snapshot()

    first = session.rollback(snapshot)
    second = session.rollback(first.seq - 1)
    session.rollback(second.seq - 1)

    assert (total_of(session), shelf_of(session)) == (1, {"a": 1})


def test_rollback_to_the_newest_record_changes_no_slice_and_is_recorded() -> None:
    session, _ = session_with_snapshot()

    record = session.rollback(session.seq)

    assert total_of(session) == 11
    assert session.records[-1] == record


def test_a_session_can_roll_back_to_a_snapshot_repeatedly() -> None:
    session, snapshot = session_with_snapshot()

    for number in range(5):
        session.dispatch(Added(number))
        session.rollback(snapshot)
        assert total_of(session) == 1


def test_a_snapshot_taken_after_a_rollback_holds_the_restored_state() -> None:
    session, snapshot = session_with_snapshot()
    session.rollback(snapshot)
    again = session.snapshot()
    session.dispatch(Added(100))

    session.rollback(again)

    assert total_of(session) == 1


def test_a_tag_refers_to_its_newest_snapshot() -> None:
    session = make_session()
    session.snapshot("t")
    session.dispatch(Added(1))
    session.snapshot("t")
    session.dispatch(Added(1))

    session.rollback("t")

    assert total_of(session) == 1


def test_if_the_newest_snapshot_of_a_tag_is_dropped_the_tag_refers_to_the_older_one() -> None:
    session = make_session()
    session.snapshot("t")
    session.dispatch(Added(1))
    session.drop_snapshot(session.snapshot("t"))

    session.rollback("t")

    assert total_of(session) == 0


def test_snapshots_are_listed_oldest_first() -> None:
    session = make_session()

    taken = [session.snapshot(tag) for tag in ("b", None, "a", "b", *map(str, range(20)))]

    assert session.snapshots == tuple(taken)


@pytest.mark.parametrize("by", ["snapshot", "id", "tag"])
def test_a_dropped_snapshot_is_gone(by: str) -> None:
    session, snapshot = session_with_snapshot()
    targets: dict[str, str | SessionSnapshot] = {"snapshot": snapshot, "id": snapshot.snapshot_id, "tag": "start"}
    target = targets[by]

    session.drop_snapshot(target)

    assert session.snapshots == ()
    for gone in (snapshot, snapshot.snapshot_id, "start"):
        with pytest.raises(UnknownSnapshot, match="has no snapshot"):
            session.rollback(gone)


def test_dropping_a_snapshot_keeps_the_records_that_can_be_rolled_back_to() -> None:
    session, snapshot = session_with_snapshot()

    session.drop_snapshot(snapshot)
    session.rollback(snapshot.seq)

    assert total_of(session) == 1


def test_a_dropped_snapshot_frees_what_only_it_held() -> None:
    session = make_session()
    session[Total].seed(Total(1))
    held = weakref.ref(session[Total].latest())
    session.snapshot("old")
    session[Total].seed(Total(2))
    session.compact(keep=0)
    assert held() is not None

    session.drop_snapshot("old")
    gc.collect()

    assert held() is None


@pytest.mark.parametrize("target", ["nowhere", "s/s99", 99, -1])
def test_an_unknown_target_is_refused_and_nothing_changes(target: str | int) -> None:
    session, _ = session_with_snapshot()

    for step in (session.rollback, session.at):
        with pytest.raises(UnknownSnapshot):
            step(target)

    assert total_of(session) == 11
    assert len(session.records) == 5


def test_the_error_for_an_unknown_snapshot_lists_the_existing_ones() -> None:
    session, _ = session_with_snapshot()

    with pytest.raises(UnknownSnapshot, match=r"'nowhere'.*'start'"):
        session.rollback("nowhere")


def test_the_error_for_an_unknown_record_lists_the_existing_ones() -> None:
    session, _ = session_with_snapshot()

    with pytest.raises(UnknownSnapshot, match=r"record 9\b.*0 to 5"):
        session.rollback(9)


def test_a_snapshot_of_another_session_is_refused() -> None:
    session, _ = session_with_snapshot()
    foreign = make_session("other").snapshot("start")

    with pytest.raises(UnknownSnapshot):
        session.rollback(foreign)


def test_two_snapshots_of_one_moment_are_two_snapshots() -> None:
    session = make_session()

    first, second = session.snapshot(), session.snapshot()
    session.drop_snapshot(first)

    assert first != second
    assert session.snapshots == (second,)


def test_a_slice_installed_after_the_snapshot_goes_back_to_its_initial_value() -> None:
    session = make_session()
    session.snapshot("before")
    session.install(Put, initial=Put("none", 0))
    session[Put].seed(Put("some", 1))

    session.rollback("before")

    assert session[Put].all() == (Put("none", 0),)
