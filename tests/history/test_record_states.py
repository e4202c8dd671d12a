"""The states before and after each record, read in one pass."""

from __future__ import annotations

from attrs import frozen

from weakfs import InMemoryFilesystem, Registry, Session, event, reducer
from weakfs.history.record_states import steps_of
from weakfs.reducers import FileWritten


@event("test/writes")
@frozen
class Writes:
    """How many files were written."""

    count: int = 0

    @reducer(on=FileWritten)
    def on_written(self, event: FileWritten) -> Writes:
        return Writes(self.count + 1)


def test_a_slice_that_was_installed_later_does_not_see_earlier_records() -> None:
    session = Session(session_id="s", registry=Registry.standard().with_types(Writes))
    InMemoryFilesystem(session).write("/a", "1\n")
    session.install(Writes, initial=Writes())
    InMemoryFilesystem(session).write("/b", "2\n")

    last = list(steps_of(session))[-1].after

    assert last is not None
    assert last[Writes].latest() == session[Writes].latest() == Writes(1)
