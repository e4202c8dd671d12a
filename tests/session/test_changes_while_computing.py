"""Changes by code that computes the next state: refused, because the computed state would overwrite them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.session.ledger import (
    Added,
    Noted,
    Put,
    Shelf,
    Total,
    elsewhere,
    install_ledger,
    make_session,
    merge_shelves,
    notes_of,
    total_of,
)
from weakfs import InMemoryFilesystem, Registry, Session
from weakfs.session import Choice, ConflictEntry, SessionError

CHANGES: dict[str, Callable[[Session], object]] = {
    "dispatch": lambda session: session.dispatch(Added(100)),
    "seed": lambda session: session[Total].seed(Total(100)),
    "snapshot": lambda session: session.snapshot("inside"),
    "drop_snapshot": lambda session: session.drop_snapshot("kept"),
    "rollback": lambda session: session.rollback(0),
    "transaction": lambda session: session.transaction().__enter__(),
    "merge": lambda session: session.merge(session.fork()),
    "compact": lambda session: session.compact(keep=0),
    "replay": lambda session: session.replay([]),
    "undo": lambda session: session.undo(),
    "refresh": lambda session: session.refresh(),
}


def open_session(place: Path) -> Session:
    return install_ledger(Session.open(place, "s", registry=Registry.empty(), on_conflict="merge"))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("is_stored", [False, True], ids=["memory", "folder"])
def test_a_reducer_cannot_change_its_session(
    tmp_path: Path, is_stored: bool, change: Callable[[Session], object]
) -> None:
    session = open_session(tmp_path) if is_stored else make_session()
    session.dispatch(Added(1))
    session.snapshot("kept")

    def reducer(total: Total, event: Noted) -> Total:
        change(session)
        return Total(7)

    session[Total].register(Noted, reducer)

    with pytest.raises(SessionError, match="from inside a reducer: reducers are pure"):
        session.dispatch(Noted("x"))

    assert (total_of(session), session.seq, len(session.records)) == (1, 1, 1)
    assert [snapshot.tag for snapshot in session.snapshots] == ["kept"]
    assert not session.in_transaction
    assert session.dispatch(Added(1)).seq == 2


@pytest.mark.parametrize("side", ["session", "fork"])
@pytest.mark.parametrize("preview", [False, True], ids=["merge", "preview"])
def test_a_function_that_resolves_conflicts_cannot_change_either_side(side: str, preview: bool) -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/a", "base\n")
    fork = session.fork()
    files.write("/a", "ours\n")
    files.bind(fork).write("/a", "theirs\n")

    def resolve(conflict: ConflictEntry) -> Choice:
        files.bind(fork if side == "fork" else session).write("/lost", "x")
        return "ours"

    with pytest.raises(SessionError, match="from inside a merge: merge functions and on_conflict functions are pure"):
        if preview:
            session.merge(fork, on_conflict=resolve, preview=True)
        else:
            session.merge(fork, on_conflict=resolve)

    assert [entry.path for entry in files.list()] == ["/a"]
    assert (session.seq, fork.seq) == (2, 2)
    session.merge(fork, on_conflict="theirs")
    assert files.read("/a").content == "theirs\n"


def changing(session: Session) -> Callable[[Shelf, Shelf, Shelf], Shelf]:
    """Return a merge function that also changes the session."""

    def merge(base: Shelf, ours: Shelf, theirs: Shelf) -> Shelf:
        session.dispatch(Noted("lost"))
        return merge_shelves(base, ours, theirs)

    return merge


def make_changing_session() -> Session:
    session = Session(registry=Registry.empty())
    session.install(Total, initial=Total)
    session.install(Noted, kind="log")
    session.install(Shelf, initial=Shelf, merge=changing(session))
    return session


def test_a_merge_function_cannot_change_the_session() -> None:
    session = make_changing_session()
    fork = session.fork()
    session.dispatch(Put("a", 1))
    fork.dispatch(Put("b", 2))

    with pytest.raises(SessionError, match="from inside a merge"):
        session.merge(fork)

    assert (session.seq, notes_of(session)) == (1, [])


def test_a_merge_function_cannot_change_the_session_at_the_end_of_a_transaction() -> None:
    session = make_changing_session()

    with pytest.raises(SessionError, match="from inside a merge"), session.transaction():
        session.dispatch(Put("a", 1))
        elsewhere(lambda: session.dispatch(Put("b", 2)))

    assert session[Shelf].latest() == Shelf({"b": 2})
    assert notes_of(session) == []


def test_a_merge_function_cannot_change_a_session_that_another_worker_has_changed(tmp_path: Path) -> None:
    first, second = (Session.open(tmp_path, "s", registry=Registry.empty(), on_conflict="merge") for _ in range(2))
    first.install(Shelf, initial=Shelf)
    second.install(Noted, kind="log")
    second.install(Shelf, initial=Shelf, merge=changing(second))
    first.dispatch(Put("a", 1))

    with pytest.raises(SessionError, match="from inside a merge"):
        second.dispatch(Put("b", 2))

    second.refresh()
    assert (second.seq, second[Shelf].latest(), notes_of(second)) == (1, Shelf({"a": 1}), [])


def test_a_function_that_resolves_conflicts_cannot_change_the_session_in_a_reversion() -> None:
    session = Session()
    files = InMemoryFilesystem(session)
    files.write("/a", "base\n")
    with session.transaction(cause="call"):
        files.write("/a", "call\n")
    files.write("/a", "later\n")

    def resolve(conflict: ConflictEntry) -> Choice:
        files.write("/lost", "x")
        return "ours"

    with pytest.raises(SessionError, match="from inside a merge"):
        session.revert("call", on_conflict=resolve)

    assert [entry.path for entry in files.list()] == ["/a"]
    assert files.read("/a").content == "later\n"
