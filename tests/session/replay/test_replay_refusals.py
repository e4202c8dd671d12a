"""Records that a replay refuses: gaps, wrong types, unknown events; the session stays as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.session.ledger import (
    Added,
    Broken,
    Total,
    make_session,
    notes_of,
    storied_session,
    total_of,
)
from weakfs import Record, SessionError
from weakfs.session import UnknownType

Records = list[Record]


def gap(records: Records) -> Records:
    return [*records[:3], *records[4:]]


def twice(records: Records) -> Records:
    return [*records[:3], *records[2:]]


def turned(records: Records) -> Records:
    return [records[1], records[0], *records[2:]]


def cut_in_front(records: Records) -> Records:
    return records[1:]


@pytest.mark.parametrize("change", [gap, twice, turned, cut_in_front])
def test_records_with_a_gap_are_refused(change: Callable[[Records], Records]) -> None:
    session, again = storied_session(), make_session("again")

    with pytest.raises(SessionError, match=r"record \d+ comes next"):
        again.replay(change(list(session.records)))

    assert (again.seq, total_of(again), notes_of(again)) == (0, 0, [])


def test_a_session_that_is_not_new_replays_only_what_follows() -> None:
    session, again = storied_session(), make_session("again")
    again.dispatch(Added(7))

    with pytest.raises(SessionError, match="record 2 comes next"):
        again.replay(session.records)
    with pytest.raises(SessionError, match="comes next"):
        session.replay(session.records)

    assert total_of(again) == 7
    assert again.snapshots == ()


@pytest.mark.parametrize(
    ("record", "error"),
    [
        ("no record", TypeError),
        (None, TypeError),
        (Record("1", 1, Added(1), None), TypeError),  # type: ignore[arg-type]  # as a careless caller gives it
        (Record(1, 1.5, Added(1), None), TypeError),  # type: ignore[arg-type]  # as a careless caller gives it
        (Record(1, 1, Added(1), 7), TypeError),  # type: ignore[arg-type]  # as a careless caller gives it
        (Record(1, 1, Added(1), "\ud800"), ValueError),
        (Record(1, 1, Added("1"), None), TypeError),  # type: ignore[arg-type]  # as a careless caller gives it
        (Record(1, 1, object(), None), UnknownType),
        (Record(1, 1, Broken(), None), UnknownType),
        (Record(1, 1, None, None), UnknownType),
    ],
)
def test_an_object_that_is_not_a_record_is_refused(record: Record, error: type[Exception]) -> None:
    session = make_session()

    with pytest.raises((error, SessionError)):
        session.replay([record])

    assert (session.seq, total_of(session)) == (0, 0)
    session.dispatch(Added(1))


def test_an_event_of_an_unknown_type_is_named_with_the_remedy() -> None:
    session = make_session()
    session.dispatch(Added(1))
    session.dispatch(Broken())
    again = make_session("again")

    with pytest.raises(UnknownType, match=r"record 2: its type Broken is not registered.*with_types\(Broken\)"):
        again.replay(session.records)

    assert total_of(again) == 0


def test_the_record_that_cannot_be_reduced_is_named() -> None:
    def fail(value: object, event: object) -> object:
        raise ArithmeticError

    again = make_session("again")
    again[Total].register(Broken, fail)

    with pytest.raises(ArithmeticError) as caught:
        again.replay([Record(1, 1, Added(1), None), Record(2, 2, Broken(), None)])

    assert caught.value.__notes__ == ["record 2 (ledger/broken) cannot be replayed"]


def test_the_iterator_of_records_cannot_change_the_session_meanwhile() -> None:
    session = make_session()

    def giving() -> Iterator[Record]:
        yield Record(1, 1, Added(1), None)
        with session.transaction():
            pass
        yield Record(2, 2, Added(1), None)

    with pytest.raises(SessionError, match="the iterable of records must not change it"):
        session.replay(giving())

    assert total_of(session) == 0


def test_a_reducer_cannot_replay_records() -> None:
    session = make_session()

    def again(value: object, event: object) -> object:
        session.replay([])
        return value

    session[Total].register(Broken, again)

    with pytest.raises(SessionError, match="from inside a reducer"):
        session.dispatch(Broken())
    with pytest.raises(SessionError, match="from inside a replay"):
        session.replay([Record(1, 1, Broken(), None)])


def test_two_snapshots_with_one_id_are_refused() -> None:
    session, again = make_session(), make_session()
    session.snapshot("theirs")
    session.dispatch(Added(1))
    again.snapshot("mine")

    with pytest.raises(SessionError, match="'s/s1' already exists"):
        again.replay(session.records)

    assert [snapshot.tag for snapshot in again.snapshots] == ["mine"]
    assert again.seq == 0
