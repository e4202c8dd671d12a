"""The states before and after each record, read in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from weakfs import InMemoryFilesystem, Registry, Session, event, reducer
from weakfs.history.record_states import steps_of
from weakfs.reducers import FileWritten
from weakfs.session.replay.verification import Moment, Rebuilding


@event("test/writes")
@frozen
class Writes:
    """How many files were written."""

    count: int = 0

    @reducer(on=FileWritten)
    def on_written(self, event: FileWritten) -> Writes:
        return Writes(self.count + 1)


@event("test/counted")
@frozen
class Counted:
    """How many files were written, counted by a reducer that the program registers."""

    files: int = 0


def test_a_slice_that_was_installed_later_does_not_see_earlier_records() -> None:
    session = Session(session_id="s", registry=Registry.standard().with_types(Writes))
    InMemoryFilesystem(session).write("/a", "1\n")
    session.install(Writes, initial=Writes())
    InMemoryFilesystem(session).write("/b", "2\n")

    last = list(steps_of(session))[-1].after

    assert last is not None
    assert last[Writes].latest() == session[Writes].latest() == Writes(1)


REGISTRY = Registry.standard().with_types(Writes)
Given = Callable[[Path], AbstractContextManager[Session]]


def written(session: Session) -> Session:
    for name in "ab":
        InMemoryFilesystem(session).write(f"/{name}", f"{name}\n")
    return session


@contextmanager
def made(folder: Path) -> Iterator[Session]:
    yield written(Session(session_id="s", registry=REGISTRY))


@contextmanager
def read_from_a_file(folder: Path) -> Iterator[Session]:
    written(Session(session_id="s", registry=REGISTRY)).save(folder / "s.json")
    yield Session.load(folder / "s.json", registry=REGISTRY)


@contextmanager
def read_from_storage(folder: Path) -> Iterator[Session]:
    with closing(Session.open(folder, "s", registry=REGISTRY)) as session:
        written(session)
    with closing(Session.open(folder, "s", registry=REGISTRY)) as session:
        yield session


def counts_of(session: Session) -> list[int]:
    """Return the number of writes after each record, read one by one; the walk must return the same."""
    numbers = range(len(session.records) + 1)
    counts = [value.count for seq in numbers if (value := session.at(seq)[Writes].latest()) is not None]
    walked = [value.count for step in steps_of(session) if step.after and (value := step.after[Writes].latest())]
    assert walked == counts[1:]
    assert all(moment.is_same for moment in moments_of(session))
    return counts


def moments_of(session: Session) -> Iterator[Moment]:
    rules, line, own = session._parts()
    return Rebuilding(rules, line, own["session_id"], own["origin_id"]).moments()


@pytest.mark.parametrize("given", [made, read_from_a_file, read_from_storage])
def test_a_slice_has_its_initial_value_before_it_is_installed(given: Given, tmp_path: Path) -> None:
    with given(tmp_path) as session:
        session.install(Writes, initial=Writes())
        assert counts_of(session) == [0, 0, 0]

        InMemoryFilesystem(session).write("/c", "c\n")
        assert counts_of(session) == [0, 0, 0, 1]

        session.rollback(1)
        assert session[Writes].latest() == Writes(0)
        assert counts_of(session) == [0, 0, 0, 1, 0]


@pytest.mark.parametrize("given", [made, read_from_a_file, read_from_storage])
def test_a_slice_that_is_installed_after_further_records_does_not_see_these(given: Given, tmp_path: Path) -> None:
    with given(tmp_path) as session:
        InMemoryFilesystem(session).write("/c", "c\n")
        session.at(1)
        session.install(Writes, initial=Writes())
        InMemoryFilesystem(session).write("/d", "d\n")

        assert counts_of(session) == [0, 0, 0, 0, 1]


def test_a_reducer_that_is_registered_after_loading_changes_a_slice_of_the_file(tmp_path: Path) -> None:
    def count(value: Counted, _: FileWritten) -> Counted:
        return Counted(value.files + 1)

    registry = REGISTRY.with_types(Counted)
    session = Session(session_id="s", registry=registry)
    session.install(Counted, initial=Counted()).register(FileWritten, count)
    written(session).save(tmp_path / "s.json")

    loaded = Session.load(tmp_path / "s.json", registry=registry)
    loaded[Counted].register(FileWritten, count)

    assert [loaded.at(seq)[Counted].latest() for seq in range(3)] == [Counted(0), Counted(1), Counted(2)]
