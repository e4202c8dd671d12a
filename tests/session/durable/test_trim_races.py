"""A compaction while another process writes: contents that it refers to are not deleted."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any, Literal

import pytest

from tests.session.durable.streams import MemoryStreams
from weakfs import InMemoryFilesystem, Session, ToolResult, Toolset
from weakfs.reducers import FileWritten
from weakfs.session import Merged, MissingBlob, SessionConflict, SessionError
from weakfs.session.durable.frames.stream_history import GAP
from weakfs.session.durable.held_lease import COMPACTION, compaction_seconds
from weakfs.session.errors import RecordsDropped
from weakfs.storage import Lease, LeaseLost
from weakfs.storage.engines.memory import AsyncMemoryStorage
from weakfs.storage.folder import FolderEventStore
from weakfs.storage.streams import AsyncStorageEventStore
from weakfs.tools import ToolCalls

OLD, NEW = "old " * 500, "new " * 500


class Racing:
    """Lets another writer work just before a trim."""

    meanwhile: Callable[[], object] | None = None

    def trim(self, *args: Any, **options: Any) -> None:
        work, self.meanwhile = self.meanwhile, None
        if work is not None:
            work()
        super().trim(*args, **options)  # type: ignore[misc]  # of the store that it is mixed into


class RacingFolder(Racing, FolderEventStore):
    pass


class RacingMemory(Racing, MemoryStreams):
    pass


@pytest.mark.parametrize("engine", ["folder", "memory"])
def test_contents_that_another_writer_uses_before_the_trim_are_kept(engine: str, tmp_path: Path) -> None:
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
    # Called when anything waits.
    waited: Callable[[], object] = staticmethod(lambda: None)

    def append(self, *args: Any, **options: Any) -> int:
        work, self.meanwhile = self.meanwhile, None
        if work is not None:
            work()
            self.meanwhile = work
        return super().append(*args, **options)

    def wait(self, stream: str, after: int, timeout: float) -> int:
        self.waited()
        return super().wait(stream, after, timeout)


def test_writers_wait_for_a_compaction_that_they_interfered_with() -> None:
    store = BusyStreams()
    session = Session.open(store, "s", on_conflict="merge")
    fs = InMemoryFilesystem(session)
    fs.write("/a", OLD)
    others = Session.open(store, "s", on_conflict="merge")
    other = InMemoryFilesystem(others)
    numbers = count()
    is_waiting = Event()
    store.waited = is_waiting.set
    writers: list[Thread] = []

    def write() -> None:
        other.write(f"/b{next(numbers)}", NEW)
        is_waiting.set()

    def write_or_wait() -> None:
        """Return when the other writer has written, or waits for the compaction."""
        if current_thread() in writers:
            return
        is_waiting.clear()
        writers.append(Thread(target=write, daemon=True))
        writers[-1].start()
        is_waiting.wait()

    store.meanwhile = write_or_wait

    assert session.compact(keep=0) == 2

    for writer in writers:
        writer.join()
    assert len(writers) == 2
    # Merges the second write into the history that the compaction left.
    assert [type(record.event) for record in others.records] == [Merged, FileWritten]
    again = InMemoryFilesystem(Session.open(store, "s"))
    assert [again.read(path).content for path in ("/a", "/b0", "/b1")] == [OLD, NEW, NEW]
    assert Session.open(store, "s").to_bytes() == others.to_bytes()


async def test_an_event_loop_continues_while_its_writer_waits_for_a_compaction() -> None:
    store = AsyncStorageEventStore(AsyncMemoryStorage())
    session = await Session.aopen(store, "s")
    lease = await store.lease("s", f"{COMPACTION}x", 60)

    writing = asyncio.create_task(Toolset(session).acall("write_file", {"path": "/a", "content": NEW}))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not writing.done()
    await store.release(lease)

    assert (await writing).success
    assert InMemoryFilesystem(await Session.aopen(store, "s")).read("/a").content == NEW


def test_a_killed_compaction_keeps_writers_waiting_until_its_lease_expires(tmp_path: Path) -> None:
    now = 1_000.0

    class Store(FolderEventStore):
        def wait(self, stream: str, after: int, timeout: float) -> int:
            nonlocal now
            now += 1
            return super().wait(stream, after, 0)

    store = Store(tmp_path, clock=lambda: now)
    fs = InMemoryFilesystem(Session.open(store, "s"))
    fs.write("/a", OLD)
    store.lease("s", f"{COMPACTION}gone", compaction_seconds(1.0))

    fs.write("/a", NEW)

    assert now == 1_000 + compaction_seconds(1.0)
    assert InMemoryFilesystem(Session.open(store, "s")).read("/a").content == NEW


def test_nobody_waits_for_the_lease_of_an_exclusive_session() -> None:
    store = BusyStreams()
    store.waited = pytest.fail
    with Session.open(store, "s", exclusive=True), pytest.raises(LeaseLost):
        InMemoryFilesystem(Session.open(store, "s")).write("/a", OLD)


@pytest.mark.parametrize(("spent", "seconds"), [(0.0, 2.0), (1.0, 4.0), (100.0, 30.0)])
def test_a_compaction_leases_the_stream_for_a_few_times_what_an_attempt_took(spent: float, seconds: float) -> None:
    assert compaction_seconds(spent) == seconds


def test_a_compaction_gives_up_if_others_write_despite_its_lease() -> None:
    class Store(BusyStreams):
        def lease(self, stream: str, owner: str, seconds: float) -> Lease:
            # A lease that expires at once.
            return Lease(stream, owner, 0, seconds)

    store = Store()
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
def test_refresh_works_after_unread_frames_were_compacted(engine: str, later: bool, tmp_path: Path) -> None:
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


def opened_twice(store: FolderEventStore, on_conflict: Literal["raise", "merge"]) -> tuple[Session, Session]:
    """Return two sessions on one history that neither has read."""
    with Session.open(store, "s") as session:
        fs, tools = InMemoryFilesystem(session), Toolset(session)
        for number in range(GAP + 5):
            fs.write("/a", f"{number}")
            if number % 50 == 0:
                tools.call("write_file", {"path": "/b", "content": f"{number}" * 1000})
        session.checkpoint()
        for number in range(GAP + 5):
            fs.write("/c", f"{number}" * 1000)
    return Session.open(store, "s", on_conflict=on_conflict), Session.open(store, "s", on_conflict=on_conflict)


def test_a_compaction_can_follow_one_by_another_process(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path)
    session, other = opened_twice(store, "merge")
    InMemoryFilesystem(other).write("/new", NEW)
    other.compact(keep=2)

    session.compact(keep=1)

    assert session.to_bytes() == Session.open(store, "s").to_bytes()
    assert InMemoryFilesystem(session).read("/new").content == NEW
    assert len(session.records) <= 2
    # And in the other direction.
    InMemoryFilesystem(other).write("/again", NEW)
    assert other.to_bytes() == Session.open(store, "s").to_bytes()


def test_a_compaction_that_has_not_read_another_one_is_refused_without_merging(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path)
    session, other = opened_twice(store, "raise")
    InMemoryFilesystem(other).write("/new", NEW)
    other.compact(keep=2)

    with pytest.raises(SessionConflict):
        session.compact(keep=1)

    assert other.to_bytes() == Session.open(store, "s").to_bytes()
    session.refresh()
    session.compact(keep=1)
    assert session.to_bytes() == Session.open(store, "s").to_bytes()


def test_records_dropped_by_another_process_are_reported_as_such(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path)
    session, other = opened_twice(store, "raise")
    other.compact(keep=2)
    for read in (lambda: list(session.records), session.to_bytes):
        with pytest.raises(
            RecordsDropped, match=r"another process dropped them; call session.refresh\(\) and try again"
        ):
            read()
    session.refresh()
    assert session.to_bytes() == other.to_bytes()


@pytest.mark.filterwarnings("error")
def test_a_transaction_that_refers_to_dropped_contents_fails_once(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path)
    with Session.open(store, "s") as session:
        fs = InMemoryFilesystem(session)
        fs.write("/f", OLD)
        for number in range(2 * GAP):
            fs.write("/c", str(number))
        session.checkpoint()
    session = Session.open(store, "s", on_conflict="merge")
    fs = InMemoryFilesystem(session)
    with Session.open(store, "s", on_conflict="merge") as others:
        other = InMemoryFilesystem(others)
        other.delete("/f")
        for number in range(2 * GAP):
            other.write("/d", str(number))
        others.compact(keep=0)

    with pytest.raises(MissingBlob, match=r"call session.refresh\(\) and try again"), session.transaction():
        fs.copy("/f", "/g")
    # A transaction that has not ended would end now, with a warning.
    gc.collect()

    assert [entry.path for entry in fs.walk()] == ["/c", "/d"]
    fs.write("/e", NEW)
    assert session.to_bytes() == Session.open(store, "s").to_bytes()


def test_calls_work_after_another_writer_compacted_unread_history(tmp_path: Path) -> None:
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


def test_a_writer_continues_after_another_compacted_its_calls(tmp_path: Path) -> None:
    with Session.open(tmp_path, "s") as session:
        tools = Toolset(session)
        for number in range(5 * GAP):
            tools.call("write_file", {"path": "/a", "content": str(number)}, call_id=f"a{number}")
        session.checkpoint()
        behind = Toolset(Session.open(tmp_path, "s", on_conflict="merge"))
        assert behind.call("write_file", {"path": "/b", "content": "1"}, call_id="b1").success
        session.refresh()
        session.compact(keep=1)

    for number in range(2, 5):
        assert behind.call("write_file", {"path": "/b", "content": str(number)}, call_id=f"b{number}").success

    again = Session.open(tmp_path, "s")
    assert again.to_bytes() == behind.session.to_bytes()
    assert len(again[ToolCalls].all()) == 5 * GAP + 4
