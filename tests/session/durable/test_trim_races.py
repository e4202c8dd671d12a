"""A compaction while another process writes: what that names is not deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

import pytest

from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session, ToolResult, Toolset
from weakfs.session import SessionConflict, SessionError
from weakfs.session.durable.history import GAP
from weakfs.storage.folder import FolderEventStore

OLD, NEW = "old " * 500, "new " * 500


class RacingFolder(FolderEventStore):
    """Lets another writer work just before a trim."""

    meanwhile: Callable[[], object] | None = None

    def trim(self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None) -> None:
        work, self.meanwhile = self.meanwhile, None
        if work is not None:
            work()
        super().trim(stream, before, contents=contents, expected=expected)


class RacingMemory(MemoryStreams):
    meanwhile: Callable[[], object] | None = None

    def trim(self, stream: str, before: int, *, contents: Iterable[str] = (), expected: int | None = None) -> None:
        work, self.meanwhile = self.meanwhile, None
        if work is not None:
            work()
        super().trim(stream, before, contents=contents, expected=expected)


@pytest.mark.parametrize("engine", ["folder", "memory"])
def test_a_content_that_another_writer_names_before_the_trim_stays(engine: str, tmp_path: Path) -> None:
    store = RacingFolder(tmp_path) if engine == "folder" else RacingMemory()
    session = Session.open(store, "s")
    fs = InMemoryFilesystem(session)
    fs.write("/a", OLD)
    fs.write("/a", NEW)
    # Enough for the frame of the old content to be dropped.
    for number in range(2 * GAP):
        fs.write("/c", str(number))
    other = InMemoryFilesystem(Session.open(store, "s", on_conflict="merge"))
    store.meanwhile = lambda: other.write("/b", OLD)

    session.compact(keep=0)

    assert store.meanwhile is None
    again = InMemoryFilesystem(Session.open(store, "s"))
    assert (again.read("/a").content, again.read("/b").content) == (NEW, OLD)


class BusyStreams(MemoryStreams):
    """Lets another writer work before each append, except its own."""

    meanwhile: Callable[[], object] | None = None

    def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        work, self.meanwhile = self.meanwhile, None
        if work is not None:
            work()
            self.meanwhile = work
        return super().append(stream, expected, frames, contents=contents, fencing=fencing)


def test_a_compaction_gives_up_when_others_write_all_the_time() -> None:
    store = BusyStreams()
    session = Session.open(store, "s", on_conflict="merge")
    fs = InMemoryFilesystem(session)
    fs.write("/a", OLD)
    other = InMemoryFilesystem(Session.open(store, "s", on_conflict="merge"))
    numbers = count()
    store.meanwhile = lambda: other.write("/b", f"{next(numbers)}")

    with pytest.raises(SessionError, match="other processes changed it during each of 20 attempts"):
        session.compact(keep=0)

    store.meanwhile = None
    assert len(session.records) == len(Session.open(store, "s").records)
    assert session.compact(keep=0) == 21
    again = InMemoryFilesystem(Session.open(store, "s"))
    assert (again.read("/a").content, again.read("/b").content) == (OLD, "19")


@pytest.mark.parametrize("later", [False, True], ids=["reset_last", "frames_after_the_reset"])
@pytest.mark.parametrize("engine", ["folder", "memory"])
def test_refresh_survives_that_the_frames_which_it_has_not_read_were_compacted(
    engine: str, later: bool, tmp_path: Path
) -> None:
    store = FolderEventStore(tmp_path) if engine == "folder" else MemoryStreams()
    behind = Session.open(store, "s", on_conflict="merge")
    mine = InMemoryFilesystem(behind)
    mine.write("/a", OLD)
    session = Session.open(store, "s")
    fs = InMemoryFilesystem(session)
    for number in range(2 * GAP):
        fs.write("/c", str(number))
    session.compact(keep=5)
    if later:
        fs.write("/d", NEW)

    mine.write("/b", NEW)

    again = InMemoryFilesystem(Session.open(store, "s"))
    assert again.tree().digest == mine.tree().digest
    assert (again.read("/a").content, again.read("/b").content) == (OLD, NEW)
    assert again.read("/c").content == str(2 * GAP - 1)


def test_calls_go_on_after_another_writer_compacted_history_that_was_not_read(tmp_path: Path) -> None:
    def call(session: Session, name: str) -> ToolResult[object]:
        return Toolset(session).call("write_file", {"file_path": f"/{name}", "content": name}, call_id=name)

    with Session.open(tmp_path, "s") as session:
        for number in range(GAP + 10):
            call(session, f"a{number}")
        session.checkpoint()
        behind = Session.open(tmp_path, "s", on_conflict="merge")
        refused = Session.open(tmp_path, "s")
        call(session, "b")
        session.compact(keep=1)

    with pytest.raises(SessionConflict):
        call(refused, "c")
    refused.refresh()
    assert call(refused, "c").success
    assert call(behind, "d").success
    assert call(behind, "e").success

    expected = behind.to_bytes()
    again = Session.open(tmp_path, "s")
    assert again.to_bytes() == expected
    assert {"a0", "b", "c", "d", "e"} <= {entry.name for entry in InMemoryFilesystem(again).list()}
