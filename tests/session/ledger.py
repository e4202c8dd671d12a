"""Small slices for sessions: a total, a shelf of numbers by name, and notes that no rollback removes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from attrs import frozen

from weakfs import Record, Registry, Session, event, reducer
from weakfs.session import Conflict, append_all


@event("ledger/added")
@frozen
class Added:
    """An amount was added to the total."""

    by: int


@event("ledger/put")
@frozen
class Put:
    """A number was put on the shelf under a name."""

    key: str
    value: int


@event("ledger/taken")
@frozen
class Taken:
    """The number under a name was taken from the shelf."""

    key: str


@event("ledger/noted")
@frozen
class Noted:
    """Somebody made a note; as a LOG slice, all notes."""

    text: str


@event("ledger/broken")
@frozen
class Broken:
    """An event that makes a reducer raise."""

    reason: str = "out of order"


@event("ledger/total")
@frozen
class Total:
    """A STATE slice without a merge function."""

    value: int = 0

    @reducer(on=Added)
    def add(self, event: Added) -> Total:
        return Total(self.value + event.by) if event.by else self


@event("ledger/shelf")
@frozen
class Shelf:
    """A STATE slice that merges name by name."""

    items: Mapping[str, int] = {}

    @reducer(on=Put)
    def put(self, event: Put) -> Shelf:
        return Shelf({**self.items, event.key: event.value})

    @reducer(on=Taken)
    def take(self, event: Taken) -> Shelf:
        return Shelf({key: value for key, value in self.items.items() if key != event.key})


def merge_shelves(base: Shelf, ours: Shelf, theirs: Shelf) -> Shelf:
    """Merge name by name; every name that both sides changed differently is a conflict."""
    merged = dict(ours.items)
    conflicts: list[str] = []
    for key in sorted({*base.items, *theirs.items}):
        old, mine, other = base.items.get(key), ours.items.get(key), theirs.items.get(key)
        if other in (old, mine):
            continue
        if mine != old:
            conflicts.append(key)
        elif other is None:
            del merged[key]
        else:
            merged[key] = other
    if conflicts:
        raise Conflict(*conflicts)
    return Shelf(merged)


class Clock:
    """A clock that advances by one nanosecond whenever it is read."""

    def __init__(self, start: int = 1) -> None:
        self._ticks = count(start)

    def __call__(self) -> int:
        return next(self._ticks)


def install_ledger(session: Session) -> Session:
    """Install the slices of this module in a session."""
    session.install(Total, initial=Total)
    session.install(Shelf, initial=Shelf, merge=merge_shelves)
    session.install(Noted, kind="log").register(Noted, append_all)
    return session


def make_session(session_id: str = "s") -> Session:
    """Make a session with the slices of this module and nothing else."""
    return install_ledger(Session(session_id=session_id, registry=Registry.empty(), clock=Clock()))


def total_of(session: Session) -> int:
    """Read the total."""
    total = session[Total].latest()
    assert total is not None
    return total.value


def shelf_of(session: Session) -> dict[str, int]:
    """Read the shelf."""
    shelf = session[Shelf].latest()
    assert shelf is not None
    return dict(shelf.items)


def notes_of(session: Session) -> list[str]:
    """Read the notes, oldest first."""
    return [note.text for note in session[Noted].all()]


def forked(*events: object) -> tuple[Session, Session]:
    """Make a session with some history, and a fork of it."""
    session = make_session()
    for past in events:
        session.dispatch(past)
    return session, session.fork()


class Recorder:
    """A handler and bus that keeps the records it gets."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def __call__(self, record: Record) -> None:
        self.records.append(record)

    publish = __call__

    @property
    def events(self) -> list[object]:
        return [record.event for record in self.records]


def elsewhere(work: Callable[[], object]) -> None:
    """Do something in another thread, and wait for it."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()


def storied_session() -> Session:
    """Make a session with every kind of step in its history."""
    session = make_session()
    session.dispatch(Added(1), cause="user")
    session[Total].append(Total(50))
    session.snapshot("s")
    session.dispatch(Put("a", 1))
    session.dispatch(Noted("n"))
    session.rollback("s")
    fork = session.fork()
    fork.dispatch(Put("b", 2), cause="side")
    fork.dispatch(Noted("side"))
    session.dispatch(Added(5))
    session.merge(fork)
    with pytest.raises(LookupError), session.transaction(cause="failing"):
        session.dispatch(Put("c", 3))
        session.dispatch(Noted("tried"))
        raise LookupError
    session.dispatch(Taken("b"))
    session[Noted].append(Noted("last"))
    return session
