"""Compaction: the state, the kept snapshots and the newer records stay as they are."""

from __future__ import annotations

import gc
import weakref
from threading import Thread

import pytest

from tests.session.ledger import Added, Noted, Put, Total, make_session, notes_of, shelf_of, total_of
from weakfs import Session, SessionError, SessionSnapshot
from weakfs.session import UnknownSnapshot


def grown_session(count: int = 10) -> Session:
    session = make_session()
    for number in range(1, count + 1):
        session.dispatch(Added(number))
    return session


def totals(session: Session) -> dict[int, int | None]:
    found: dict[int, int | None] = {}
    for seq in range(session.seq + 1):
        try:
            total = session.at(seq)[Total].latest()
        except UnknownSnapshot:
            continue
        found[seq] = total.value if total else None
    return found


def test_compacting_returns_the_number_of_dropped_records() -> None:
    session = grown_session()

    assert session.compact(keep=3) == 7
    assert session.compact(keep=3) == 0
    assert session.compact(keep=100) == 0


def test_the_newest_records_are_kept_with_their_numbers() -> None:
    session = grown_session()
    kept = list(session.records[-3:])

    session.compact(keep=3)

    assert list(session.records) == kept
    assert [record.seq for record in session.records] == [8, 9, 10]
    assert session.records[-1].seq == 10
    assert session.records[0].seq == 8
    assert [record.seq for record in session.records.since(0)] == [8, 9, 10]


def test_the_state_is_as_it_was() -> None:
    session = grown_session()
    session.dispatch(Noted("n"))

    session.compact(keep=0)

    assert total_of(session) == 55
    assert notes_of(session) == ["n"]
    assert len(session.records) == 0
    assert session.seq == 11


def test_record_numbers_continue_after_compacting() -> None:
    session = grown_session()
    session.compact(keep=0)

    assert session.dispatch(Added(1)).seq == 11
    assert session.records[0].seq == 11


def test_the_states_of_kept_records_can_still_be_read() -> None:
    session = grown_session()
    before = totals(session)

    session.compact(keep=4)

    assert totals(session) == {seq: before[seq] for seq in range(6, 11)}


def test_rolling_back_to_a_dropped_record_is_refused_with_the_remaining_numbers() -> None:
    session = grown_session()
    session.compact(keep=3)

    for step in (session.rollback, session.at):
        with pytest.raises(UnknownSnapshot, match="7 to 10"):
            step(6)


def test_the_session_can_roll_back_to_before_the_first_kept_record() -> None:
    session = grown_session()
    session.compact(keep=3)

    session.rollback(7)

    assert total_of(session) == 28


def test_kept_snapshots_stay_usable() -> None:
    session = make_session()
    snapshots: list[SessionSnapshot] = []
    for number in range(1, 6):
        session.dispatch(Added(number))
        session.dispatch(Noted(str(number)))
        snapshots.append(session.snapshot(str(number)))

    session.compact(keep=0)

    assert session.snapshots == tuple(snapshots)
    for snapshot, expected in zip(snapshots, (1, 3, 6, 10, 15), strict=True):
        assert session.at(snapshot)[Total].latest() == Total(expected)
        session.rollback(snapshot)
        assert total_of(session) == expected
        assert notes_of(session) == ["1", "2", "3", "4", "5"]


def test_compacting_repeatedly_while_working() -> None:
    session = make_session()
    expected = 0

    for number in range(1, 400):
        session.dispatch(Added(number))
        expected += number
        if number % 7 == 0:
            session.compact(keep=number % 5)
        assert session.seq == number
        assert total_of(session) == expected

    assert totals(session)[session.seq] == expected


@pytest.mark.slow
def test_compacting_a_long_history_with_rollbacks() -> None:
    session = make_session()
    for number in range(1, 1300):
        if number % 100 == 0:
            session.rollback(number - 50)
        else:
            session.dispatch(Added(1))
    before = totals(session)

    session.compact(keep=900)

    assert totals(session) == {seq: before[seq] for seq in range(399, 1300)}


def test_compacting_in_the_middle_of_merged_records() -> None:
    session = grown_session(2)
    fork = session.fork()
    for number in range(6):
        fork.dispatch(Put(str(number), number))
        fork.dispatch(Noted(str(number)))
    session.merge(fork)
    session.dispatch(Added(1))
    views = {seq: (session.at(seq)[Total].latest(), session.at(seq)[Noted].all()) for seq in range(session.seq + 1)}

    session.compact(keep=5)

    for seq in range(session.seq - 5, session.seq + 1):
        assert (session.at(seq)[Total].latest(), session.at(seq)[Noted].all()) == views[seq]
    assert shelf_of(session) == {str(number): number for number in range(6)}


def test_a_fork_can_be_merged_after_its_parent_was_compacted() -> None:
    session = grown_session()
    fork = session.fork()
    fork.dispatch(Put("a", 1), cause="side")
    session.dispatch(Added(1))
    session.compact(keep=0)

    session.merge(fork)

    assert (total_of(session), shelf_of(session)) == (56, {"a": 1})
    assert [(record.seq, record.cause) for record in session.records] == [(12, None), (13, "side")]


def test_the_compaction_of_a_parent_does_not_affect_its_fork() -> None:
    session = grown_session()
    fork = session.fork()

    session.compact(keep=0)
    fork.rollback(3)

    assert total_of(fork) == 6
    assert len(fork.records) == 11


def test_a_fork_that_was_compacted_loses_nothing_of_its_work_when_merged() -> None:
    session = grown_session(3)
    fork = session.fork()
    for number in range(5):
        fork.dispatch(Noted(str(number)))
    fork.compact(keep=2)
    session.dispatch(Added(1))

    session.merge(fork)

    assert notes_of(session) == ["0", "1", "2", "3", "4"]
    assert session.at(session.seq)[Noted].all() == session[Noted].all()
    replayed = make_session("again")
    replayed.replay(session.records)
    assert notes_of(replayed) == notes_of(session)


def test_a_transaction_that_was_open_while_the_session_was_compacted_ends_well() -> None:
    session = grown_session(5)
    inside = session.transaction(cause="call")
    with inside:
        session.dispatch(Added(1))
        compact_elsewhere(session)

    assert total_of(session) == 16
    assert [record.seq for record in session.records] == list(range(6, session.seq + 1))


def compact_elsewhere(session: Session) -> None:
    """Compact from another thread, outside of the transaction that is open here."""
    thread = Thread(target=session.compact, kwargs={"keep": 0})
    thread.start()
    thread.join()


def test_compacting_inside_a_transaction_is_refused() -> None:
    session = grown_session()

    with session.transaction():
        session.dispatch(Added(1))
        with pytest.raises(SessionError, match="transaction"):
            session.compact(keep=0)

    assert len(session.records) == 11


def test_a_negative_number_to_keep_is_refused() -> None:
    session = grown_session()

    with pytest.raises(ValueError, match="-1"):
        session.compact(keep=-1)

    assert len(session.records) == 10


def test_contents_that_nothing_refers_to_are_freed() -> None:
    session = make_session()
    session[Total].seed(Total(1))
    value = weakref.ref(session[Total].latest())
    session[Total].seed(Total(2))

    session.compact(keep=1)
    gc.collect()

    assert value() is not None, "the state before the record that is kept can be gone back to"
    session.compact(keep=0)
    gc.collect()
    assert value() is None


def test_records_that_are_being_read_stay_readable() -> None:
    session = grown_session()
    records = session.records

    session.compact(keep=0)

    assert [record.seq for record in records] == list(range(1, 11))
