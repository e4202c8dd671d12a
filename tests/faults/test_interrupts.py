"""A keyboard interrupt may occur anywhere: the current change is complete or absent, and the session stays usable."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

import pytest

from tests.faults.interrupting import every_place, interrupted_at, worked_session
from tests.session.ledger import Added, Noted, Put, make_session, notes_of, shelf_of, total_of
from weakfs import Session

# An interrupt that comes while a generator is being closed cannot be raised anywhere.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def dispatching(session: Session) -> None:
    session.dispatch(Added(1))
    session.dispatch(Noted("n"))


def seeding(session: Session) -> None:
    session.dispatch(Put("a", 1))
    session.dispatch(Put("a", 2))


def rolling_back(session: Session) -> None:
    session.rollback(1)
    session.rollback("kept")


def keeping(session: Session) -> None:
    session.snapshot("new")
    session.drop_snapshot("new")


def in_a_transaction(session: Session) -> None:
    with session.transaction(), session.transaction():
        session.dispatch(Added(1))
        session.dispatch(Noted("n"))


def in_a_transaction_that_fails(session: Session) -> None:
    with suppress(LookupError), session.transaction():
        session.dispatch(Added(1))
        raise LookupError


def in_a_fork(session: Session) -> None:
    fork = session.fork()
    fork.dispatch(Put("b", 1))
    fork.dispatch(Noted("n"))
    session.dispatch(Added(1))
    session.merge(fork)
    fork.dispatch(Put("b", 2))
    session.merge(fork)


def compacting(session: Session) -> None:
    session.compact(keep=1)


def under_the_lock(session: Session) -> None:
    with session.lock:
        session.dispatch(Added(total_of(session)))


SCENES = [
    dispatching,
    seeding,
    rolling_back,
    keeping,
    in_a_transaction,
    in_a_transaction_that_fails,
    in_a_fork,
    compacting,
    under_the_lock,
]


def usable_elsewhere(session: Session) -> bool:
    """Return whether another thread can still use a session."""
    other = Thread(target=session.dispatch, args=(Put("elsewhere", 1),), daemon=True)
    other.start()
    other.join(timeout=60)
    return not other.is_alive()


def shelf_seen_elsewhere(session: Session) -> dict[str, int]:
    """Read the shelf in another thread, where no transaction of this one is seen."""
    seen: list[dict[str, int]] = []
    reader = Thread(target=lambda: seen.append(shelf_of(session)))
    reader.start()
    reader.join()
    return seen[0]


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("scene", SCENES, ids=[scene.__name__ for scene in SCENES])
def test_an_interrupt_anywhere_leaves_a_consistent_and_usable_session(scene: Callable[[Session], None]) -> None:
    def attempt(place: int) -> bool:
        session = worked_session()
        there = interrupted_at(place, lambda: scene(session))

        assert usable_elsewhere(session), f"place {place}: the lock is still held"
        session.dispatch(Put("afterwards", 1))
        assert shelf_seen_elsewhere(session)["afterwards"] == 1, f"place {place}: a transaction is still open"
        first = session.records[0].seq
        assert [record.seq for record in session.records] == list(range(first, session.seq + 1)), f"place {place}"
        if first == 1:
            again = make_session("again")
            again.replay(session.records)
            for read in (total_of, shelf_of, notes_of):
                assert read(again) == read(session), f"place {place}: the records tell of another state"
        return there

    every_place(attempt)


def test_an_interrupted_merge_can_be_repeated_and_does_nothing_twice() -> None:
    def attempt(place: int) -> bool:
        session = worked_session()
        fork = session.fork()
        for amount in (1, 10, 100):
            fork.dispatch(Added(amount))
            fork.dispatch(Noted(str(amount)))

        there = interrupted_at(place, lambda: session.merge(fork))
        session.merge(fork)

        assert total_of(session) == 116, f"place {place}"
        assert notes_of(session) == ["before", "1", "10", "100"], f"place {place}"
        return there

    every_place(attempt)


def test_an_interrupted_transaction_happened_once_or_not_at_all() -> None:
    def attempt(place: int) -> bool:
        session = worked_session()

        def add() -> None:
            with session.transaction():
                session.dispatch(Added(1))
                session.dispatch(Put("b", 1))

        there = interrupted_at(place, add)

        done = (total_of(session), shelf_of(session))
        assert done in ((5, {"a": 0}), (6, {"a": 0, "b": 1})), f"place {place}"
        assert sum(record.event == Added(1) for record in session.records) <= 1, f"place {place}"
        assert there or done[0] == 6
        return there

    every_place(attempt)


def test_subscribers_get_later_records_after_an_interrupt_anywhere() -> None:
    def attempt(place: int) -> bool:
        session = worked_session()
        told: list[int] = []
        session.subscribe(object, lambda record: told.append(record.seq))

        there = interrupted_at(place, lambda: in_a_transaction(session))
        later = session.dispatch(Added(1)).seq

        assert told[-1:] == [later], f"place {place}"
        assert told == sorted(set(told)), f"place {place}"
        return there

    every_place(attempt)
