"""A host directory with a durable session: recovery after a kill or a lost connection."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.faults.dying import dying
from tests.models.host import exact, left_in_journals, record
from tests.session.durable.streams import MemoryStreams, failing_once
from weakfs import HostFilesystem, RollbackIncomplete, Session, Toolset
from weakfs.cli.directories import recover
from weakfs.session.durable.commits.uncertain_commits import was_stored
from weakfs.session.external_filesystems import CommitPlace
from weakfs.storage import OutcomeUnknown, StorageError, StreamConflict, open_event_store
from weakfs.storage.folder.store import FolderEventStore
from weakfs.storage.steps import run
from weakfs.tools.slices import ToolCall

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


class Mortal(FolderEventStore):
    """A store whose process dies before or after an append."""

    moment = ""

    def append(self, *args: Any, **options: Any) -> int:
        if self.moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        number = super().append(*args, **options)
        if self.moment == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return number


class Remote(MemoryStreams):
    """Streams on a server: a request may arrive late."""

    url = "remote:streams"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "dir").mkdir(parents=True)
    (tmp_path / "root" / "dir" / "file").write_text("old")
    return tmp_path / "root"


def files_of(root: Path, session: Session | None = None) -> HostFilesystem:
    return HostFilesystem(root, session=session or Session(), store=root.parent / "store")


def journals(root: Path) -> list[Path]:
    return left_in_journals(root.parent / "store", after_interrupt=True)


def killed(root: Path, moment: str) -> Mapping[bytes, object]:
    """Let a process die before or after the append of a call, and return the files as they were before the call."""
    before = exact(record(root))

    def work(_: Callable[[str], None]) -> None:
        store = Mortal(root.parent / "sessions")
        session = Session.open(store, "s")
        tools = Toolset(session, files_of(root, session))
        store.moment = moment
        tools.call("mv", {"source": "dir", "destination": "moved"}, call_id="last")

    _, was_killed = dying(work)
    assert was_killed
    assert (root / "moved" / "file").exists()
    assert len(journals(root)) == 1
    return before


def assert_settled(root: Path, moment: str, before: Mapping[bytes, object]) -> None:
    """Assert that the files are as the session says."""
    with Session.open(root.parent / "sessions", "s") as session:
        calls = [call.call_id for call in session[ToolCall].all()]
    assert journals(root) == []
    assert calls == (["last"] if moment == "after" else [])
    if moment == "after":
        assert (root / "moved" / "file").read_text() == "old"
        assert not (root / "dir").exists()
    else:
        assert exact(record(root)) == before


@needs_fork
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_call_is_recovered_by_its_session(root: Path, moment: str) -> None:
    before = killed(root, moment)

    with Session.open(root.parent / "sessions") as session:
        files_of(root, session)

    assert_settled(root, moment, before)


@needs_fork
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_call_is_recovered_by_another_session(root: Path, moment: str) -> None:
    before = killed(root, moment)

    files_of(root)

    assert_settled(root, moment, before)


@needs_fork
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_call_is_recovered_by_the_command_line(root: Path, moment: str) -> None:
    before = killed(root, moment)

    assert recover(str(root), str(root.parent / "store")) == (moment == "before")

    assert_settled(root, moment, before)


@needs_fork
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_killed_call_is_recovered_by_those_who_had_the_directory_open(root: Path, moment: str) -> None:
    other = files_of(root)
    killed(root, moment)

    other.write("/other", "other")

    assert (root / "moved").exists() == (moment == "after")
    assert journals(root) == []


@needs_fork
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_storage_that_cannot_be_reached_is_named_and_nothing_is_changed(root: Path, moment: str) -> None:
    before = killed(root, moment)
    left = exact(record(root.parent))
    (root.parent / "sessions").rename(root.parent / "elsewhere")

    with pytest.raises(StorageError, match=f"folder:{root.parent}/sessions.*restore it"):
        files_of(root)

    assert not (root.parent / "sessions").exists()
    looked_at = HostFilesystem(root, store=root.parent / "store", read_only=True)
    assert looked_at.read("/moved/file").content == "old"
    (root.parent / "elsewhere").rename(root.parent / "sessions")
    assert exact(record(root.parent)).keys() == left.keys()
    files_of(root)
    assert_settled(root, moment, before)


@needs_fork
def test_work_of_a_session_that_was_deleted_is_undone(root: Path) -> None:
    before = killed(root, "after")
    open_event_store(root.parent / "sessions").delete("s")

    files_of(root)

    assert exact(record(root)) == before


@needs_fork
def test_work_whose_commit_was_overtaken_by_another_is_undone(root: Path) -> None:
    before = killed(root, "before")
    with Session.open(root.parent / "sessions", "s") as session:
        session.snapshot("other")

    files_of(root)

    assert exact(record(root)) == before
    assert journals(root) == []


@needs_fork
def test_a_commit_is_found_even_if_others_followed_it(root: Path) -> None:
    before = killed(root, "after")
    with Session.open(root.parent / "sessions", "s") as session:
        session.snapshot("other")

    files_of(root)

    assert_settled(root, "after", before)


@needs_fork
def test_the_outcome_of_a_commit_that_was_trimmed_is_not_guessed(root: Path) -> None:
    killed(root, "after")
    store = open_event_store(root.parent / "sessions")
    with Session.open(store, "s") as session:
        session.snapshot("other")
        session.checkpoint()
    store.trim("s", store.head("s"))

    with pytest.raises(StorageError, match="was dropped with old records"):
        files_of(root)

    assert (root / "moved" / "file").exists()
    assert len(journals(root)) == 1


def test_one_operation_is_one_commit(root: Path) -> None:
    streams = MemoryStreams()
    session = Session.open(streams, "s")
    fs = files_of(root, session)
    for operation in (
        lambda: fs.write("/dir/file", "new"),
        lambda: fs.move("/dir", "/moved"),
        lambda: fs.snapshot(),
        lambda: session.snapshot("now"),
        lambda: fs.delete("/moved", recursive=True),
        lambda: session.rollback("now"),
        lambda: Toolset(session, fs).call("write_file", {"path": "new", "content": "new"}),
    ):
        head = streams.head("s")
        operation()
        assert streams.head("s") == head + 1
    assert journals(root) == []


def test_a_commit_that_fails_undoes_the_files(root: Path) -> None:
    streams = MemoryStreams()
    session = Session.open(streams, "s")
    fs = files_of(root, session)
    before = exact(record(root))
    streams.fault = failing_once("before")

    with pytest.raises(StorageError, match="told to fail"):
        fs.move("/dir", "/moved")

    assert exact(record(root)) == before
    assert journals(root) == []
    assert Session.open(streams, "s").to_bytes() == session.to_bytes()


def vanishing(moment: str, times: int) -> Callable[[str], None]:
    """Return a fault that loses the connection at a moment, the given number of times."""
    left = [times]

    def fault(now: str) -> None:
        if now == moment and left[0]:
            left[0] -= 1
            raise OutcomeUnknown("told to vanish")

    return fault


@pytest.mark.parametrize("kind", [MemoryStreams, Remote])
def test_a_commit_whose_acknowledgement_was_lost_is_found(root: Path, kind: type[MemoryStreams]) -> None:
    streams = kind()
    session = Session.open(streams, "s")
    fs = files_of(root, session)
    appended: list[str] = []

    def fault(now: str) -> None:
        appended.append(now)
        if len(appended) > 1 and len(appended) < 7:
            raise OutcomeUnknown("told to vanish")

    streams.fault = fault

    fs.move("/dir", "/moved")

    assert (root / "moved" / "file").exists()
    assert journals(root) == []
    fs.write("/more", "more")
    assert Session.open(streams, "s").to_bytes() == session.to_bytes()


@pytest.mark.parametrize("kind", [MemoryStreams, Remote])
def test_a_lost_commit_is_blocked_and_its_files_are_undone(root: Path, kind: type[MemoryStreams]) -> None:
    streams = kind()
    session = Session.open(streams, "s")
    fs = files_of(root, session)
    before = exact(record(root))
    head = streams.head("s")
    streams.fault = vanishing("before", 3)

    with pytest.raises(OutcomeUnknown):
        fs.move("/dir", "/moved")

    assert exact(record(root)) == before
    with pytest.raises(StreamConflict):
        streams.append("s", head, [b"arrives late"])
    fs.write("/more", "more")
    assert Session.open(streams, "s").to_bytes() == session.to_bytes()


@pytest.mark.parametrize("is_stored", [False, True])
def test_work_is_in_doubt_until_the_storage_answers(root: Path, is_stored: bool) -> None:
    streams = Remote()
    session = Session.open(streams, "s")
    fs = files_of(root, session)
    before = exact(record(root))
    seq = session.seq
    reads = streams.read

    def unreachable(*_: object, **__: object) -> None:
        raise StorageError("told to be away")

    streams.fault = vanishing("before", 99)
    streams.fault = failing_at_last() if is_stored else streams.fault
    streams.read = unreachable  # type: ignore[assignment,method-assign]

    with pytest.raises(RollbackIncomplete, match=r"in doubt.*remote:streams.*told to be away"):
        fs.move("/dir", "/moved")
    with pytest.raises(RollbackIncomplete):
        fs.write("/more", "more")
    with pytest.raises(RollbackIncomplete):
        session.repair()

    assert (root / "moved").exists()
    assert len(journals(root)) == 1
    assert session.seq == seq
    streams.fault = lambda moment: None
    streams.read = reads  # type: ignore[method-assign]
    session.repair()
    assert journals(root) == []
    assert (session.seq > seq) == is_stored
    assert (root / "moved").exists() == is_stored
    assert is_stored or exact(record(root)) == before
    fs.write("/more", "more")
    assert Session.open(streams, "s").to_bytes() == session.to_bytes()


def failing_at_last() -> Callable[[str], None]:
    """Return a fault that stores an append but never acknowledges it."""
    seen: list[str] = []

    def fault(now: str) -> None:
        seen.append(now)
        if len(seen) > 1:
            raise OutcomeUnknown("told to vanish")

    return fault


def test_an_interrupt_after_the_commit_leaves_it_done(root: Path) -> None:
    streams = MemoryStreams()
    session = Session.open(streams, "s")
    fs = files_of(root, session)
    seen: list[str] = []

    def fault(now: str) -> None:
        seen.append(now)
        if seen == ["before", "after"]:
            raise KeyboardInterrupt

    streams.fault = fault

    with pytest.raises(KeyboardInterrupt):
        fs.move("/dir", "/moved")

    assert (root / "moved" / "file").exists()
    assert journals(root) == []
    fs.write("/more", "more")
    assert Session.open(streams, "s").to_bytes() == session.to_bytes()


def test_work_is_prepared_again_for_a_commit_that_comes_after_others(root: Path) -> None:
    streams = MemoryStreams()
    session = Session.open(streams, "s", on_conflict="merge")
    other = Session.open(streams, "s", on_conflict="merge")
    fs = files_of(root, session)
    other.snapshot("other")

    fs.move("/dir", "/moved")

    assert session.snapshots[-1].tag == "other"
    assert (root / "moved" / "file").exists()
    assert journals(root) == []
    other.refresh()
    assert other.seq == session.seq


def test_an_empty_frame_blocks_a_late_commit() -> None:
    streams = Remote()
    session = Session.open(streams, "s")
    session.snapshot("first")
    place = CommitPlace(streams.url, "s", streams.head("s") + 1, "lost-1", session.seq)

    assert not run(was_stored(streams.url, place), streams)
    assert not run(was_stored(streams.url, place), streams)

    assert streams.head("s") == place.number
    with pytest.raises(StreamConflict):
        streams.append("s", place.number - 1, [b"arrives late"])
    again = Session.open(streams, "s")
    again.snapshot("second")
    assert [snapshot.tag for snapshot in Session.open(streams, "s").snapshots] == ["first", "second"]


def test_a_commit_that_arrives_before_it_can_be_blocked_counts_as_stored() -> None:
    class Crossing(Remote):
        late: bytes | None = None

        def append(self, stream: str, expected: int, *args: Any, **options: Any) -> int:
            late, self.late = self.late, None
            if late is not None:
                super().append(stream, expected, [late])
            return super().append(stream, expected, *args, **options)

    streams = Crossing()
    session = Session.open(streams, "s")
    session.snapshot("first")
    place = CommitPlace(streams.url, "s", streams.head("s") + 1, "late-1", session.seq)
    streams.late = orjson.dumps({"id": "late-1", "after": session.seq, "counter": 0})

    assert run(was_stored(streams.url, place), streams)
    assert streams.head("s") == place.number
