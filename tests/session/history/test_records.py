"""The records of a session: who did what and when, as a sequence that does not change under its reader."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.session.ledger import Added, Clock, Noted, Put, Total, install_ledger, make_session
from weakfs import Record, Registry, Session
from weakfs.session import Merged, RolledBack


def added(count: int) -> Session:
    session = make_session()
    for number in range(1, count + 1):
        session.dispatch(Added(number), cause=f"c{number}")
    return session


def test_records_are_a_sequence() -> None:
    records = added(3).records

    assert isinstance(records, Sequence)
    assert len(records) == 3
    assert [record.event for record in records] == [Added(1), Added(2), Added(3)]
    assert list(reversed(records)) == [records[2], records[1], records[0]]
    assert records[1] in records
    assert records.index(records[2]) == 2
    assert records.count(records[0]) == 1


def test_numbers_start_at_one_without_gaps() -> None:
    session = added(2)
    session.rollback(0)
    with session.transaction():
        session.dispatch(Added(1))
    fork = session.fork()
    fork.dispatch(Added(1))
    session.merge(fork)

    assert [record.seq for record in session.records] == list(range(1, session.seq + 1))


def test_the_time_is_that_of_the_clock_in_nanoseconds() -> None:
    session = install_ledger(Session(registry=Registry.empty(), clock=Clock(start=1_700_000_000_000_000_000)))

    first, second = session.dispatch(Added(1)), session.dispatch(Added(1))

    assert (first.at, second.at) == (1_700_000_000_000_000_000, 1_700_000_000_000_000_001)


def test_a_record_equals_the_one_that_dispatch_returned() -> None:
    session = make_session()

    returned = [session.dispatch(Put("a", 1), cause="x"), session.dispatch(Noted("n")), session.rollback(0)]

    assert list(session.records) == returned


@pytest.mark.parametrize("index", [0, 1, 4, -1, -2, -5])
def test_an_index_counts_from_either_end(index: int) -> None:
    session = added(5)

    record = session.records[index]

    assert record == list(session.records)[index]
    assert record.seq == index + 1 if index >= 0 else record.seq == 6 + index


@pytest.mark.parametrize("index", [5, 6, -6, 100])
def test_an_index_outside_is_an_index_error(index: int) -> None:
    with pytest.raises(IndexError):
        added(5).records[index]


@pytest.mark.parametrize(
    "part",
    [slice(None), slice(1, 3), slice(-2, None), slice(None, None, 2), slice(None, None, -1), slice(4, 1), slice(9, 99)],
)
def test_a_slice_is_that_part_of_all_records(part: slice) -> None:
    session = added(5)

    assert list(session.records[part]) == list(session.records)[part]


def test_since_iterates_over_the_records_after_a_number() -> None:
    session = added(5)

    assert [record.seq for record in session.records.since(3)] == [4, 5]
    assert [record.seq for record in session.records.since(0)] == [1, 2, 3, 4, 5]
    assert list(session.records.since(5)) == []


def test_a_sequence_of_records_does_not_grow_with_the_session() -> None:
    session = added(2)
    before = session.records

    session.dispatch(Added(3))

    assert len(before) == 2
    assert [record.seq for record in before] == [1, 2]
    assert len(session.records) == 3


def test_iterating_while_dispatching_sees_the_records_from_before() -> None:
    session = added(3)

    for record in session.records:
        session.dispatch(Noted(str(record.seq)))

    assert len(session.records) == 6


def test_a_rollback_names_its_target_and_its_cause() -> None:
    session = added(2)
    snapshot = session.snapshot("here")

    by_number = session.rollback(1, cause="user")
    by_snapshot = session.rollback(snapshot)

    assert isinstance(by_number.event, RolledBack)
    assert isinstance(by_snapshot.event, RolledBack)
    assert (by_number.event.target, by_number.event.snapshot_id, by_number.cause) == (1, None, "user")
    assert (by_snapshot.event.target, by_snapshot.event.snapshot_id) == (2, snapshot.snapshot_id)


def test_a_merge_names_the_fork_and_how_many_records_follow() -> None:
    session = added(2)
    fork = session.fork("side")
    fork.dispatch(Put("a", 1), cause="call-7")
    fork.dispatch(Put("b", 1), cause="call-8")

    record = session.merge(fork, cause="join")

    assert isinstance(record.event, Merged)
    assert (record.event.fork, record.event.base, record.event.count) == (fork.session_id, 2, 2)
    assert (record.seq, record.cause) == (3, "join")
    assert [(later.seq, later.cause) for later in session.records.since(3)] == [(4, "call-7"), (5, "call-8")]


def test_an_empty_session_has_no_records() -> None:
    session = make_session()

    assert len(session.records) == 0
    assert list(session.records) == []
    assert session.seq == 0
    with pytest.raises(IndexError):
        session.records[-1]


def test_a_record_is_a_value() -> None:
    record = Record(1, 2, Added(3), "x")

    assert record == Record(1, 2, Added(3), "x")
    assert record != Record(1, 2, Added(3), None)
    with pytest.raises(AttributeError):
        record.seq = 9  # type: ignore[misc]  # the point of this test


def test_any_of_thousands_of_records_can_be_read() -> None:
    session = added(1500)

    records = session.records

    assert [records[index].seq for index in (0, 255, 256, 511, 512, 1499, -1500)] == [1, 256, 257, 512, 513, 1500, 1]
    assert [record.seq for record in records.since(1497)] == [1498, 1499, 1500]


def test_a_value_seeded_by_hand_is_in_its_record() -> None:
    session = make_session()

    session[Total].seed(Total(4))

    assert session.records[0].event.items == (Total(4),)
