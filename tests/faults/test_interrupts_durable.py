"""Interrupts in the changes of a durable session: memory and storage agree again at its next change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

from tests.faults.interrupting import every_place, interrupted_at
from weakfs import InMemoryFilesystem, Session
from weakfs.session.slices.events import Merged


def names(session: Session) -> set[str]:
    return {entry.name for entry in InMemoryFilesystem(session).list()}


def write(session: Session) -> None:
    InMemoryFilesystem(session).write("/a", "1")


def write_two(session: Session) -> None:
    with session.transaction():
        InMemoryFilesystem(session).write("/a", "1")
        InMemoryFilesystem(session).write("/b", "2")


def take_snapshot(session: Session) -> None:
    session.snapshot("taken")


@pytest.mark.slow
@pytest.mark.parametrize("on_conflict", ["raise", "merge"])
@pytest.mark.parametrize("change", [write, write_two, take_snapshot])
def test_a_change_interrupted_anywhere_is_complete_or_undone_in_memory_and_in_storage(
    tmp_path: Path, change: Callable[[Session], None], on_conflict: Literal["raise", "merge"]
) -> None:
    def attempt(place: int) -> bool:
        folder = tmp_path / str(place)
        with Session.open(folder, "s", on_conflict=on_conflict) as session:
            InMemoryFilesystem(session).write("/kept", "0")
            is_interrupted = interrupted_at(place, lambda: change(session))
            seen = names(session)
            assert seen in ({"kept"}, {"kept", "a", "b"} if change is write_two else {"kept", "a"})
            InMemoryFilesystem(session).write("/next", "3")
            assert names(session) == seen | {"next"}
            with Session.open(folder, "s") as other:
                assert other.to_bytes() == session.to_bytes()
        return is_interrupted

    every_place(attempt)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "checkpoint", "refresh"])
def test_the_next_change_settles_an_interrupted_one(tmp_path: Path, how: str) -> None:
    def attempt(place: int) -> bool:
        folder = tmp_path / str(place)
        session = Session.open(folder, "s")
        InMemoryFilesystem(session).write("/kept", "0")
        is_interrupted = interrupted_at(place, lambda: write(session))
        seen = names(session)
        if how == "checkpoint":
            session.checkpoint()
        elif how == "refresh":
            session.refresh()
        session.close()
        with Session.open(folder, "s") as again:
            assert names(again) == seen
        return is_interrupted

    every_place(attempt)


# A descriptor whose creation is interrupted has no number yet, which its destructor reports.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_an_interrupted_compaction_is_complete_or_absent_and_the_session_continues(tmp_path: Path) -> None:
    def attempt(place: int) -> bool:
        folder = tmp_path / str(place)
        with Session.open(folder, "s") as session:
            for number in range(3):
                InMemoryFilesystem(session).write(f"/{number}", "0")
                with pytest.raises(ZeroDivisionError), session.transaction():
                    write(session)
                    raise ZeroDivisionError
            session.checkpoint()
            before = list(session.records)
            is_interrupted = interrupted_at(place, lambda: session.compact(keep=2))
            records = list(session.records)
            assert records in (before, before[-2:])
            InMemoryFilesystem(session).write("/next", "3")
            session.checkpoint()
            # The compaction may have been stored before the interrupt: the next change notices this, and is merged.
            *found, last = session.records
            if type(found[-1].event) is Merged:
                assert records == before
                assert found[:-1] == before[-2:]
            else:
                assert found in (records, before[-2:])
            assert last.event.path == "/next"
            session.compact(keep=2)
            assert list(session.records) == [found[-1], last]
            with Session.open(folder, "s") as other:
                assert other.to_bytes() == session.to_bytes()
        return is_interrupted

    every_place(attempt)
