"""The memory that a long history of small changes takes, and the part of it that the garbage collector tracks."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator

import pytest

from tests.sampling import is_exhaustive
from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.reducers import FileTree, FileWritten
from weakfs.reducers.tree.node import walk

MIB = 1 << 20


def megabytes() -> int:
    """Return how many MiB of Python's memory are in use, rounded down; contents of 1 MiB count as one each."""
    return tracemalloc.get_traced_memory()[0] // MIB


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


WRITES = 100_000 if is_exhaustive() else 25_000
FILES = 2_000


def collect() -> int:
    """Collect until nothing is left to collect, and return how many objects are tracked then.

    Tuples of tuples become untracked one level at a time.
    """
    for _ in range(3):
        gc.collect()
    return len(gc.get_objects())


@pytest.fixture(scope="module")
def busy() -> tuple[Session, InMemoryFilesystem, int]:
    """Return a session of many small writes, and how many more objects the collector tracks because of it."""
    before = collect()
    session = Session(session_id="s")
    fs = InMemoryFilesystem(session)
    for number in range(WRITES):
        fs.write(f"/d{number % 20}/s{number % 50}/f{number % FILES}", f"content {number}\n")
    return session, fs, collect() - before


@pytest.mark.slow
def test_records_are_tuples_that_the_collector_does_not_track(busy: tuple[Session, InMemoryFilesystem, int]) -> None:
    session, _, _ = busy
    rows = session._parts()[1].rows
    assert len(rows) == WRITES
    unpacked = [stretch for stretch, _ in rows._stretches() if not stretch.is_packed]
    assert 0 < len(unpacked) < 20
    assert not any(gc.is_tracked(row) for stretch in unpacked for row in stretch.read())


@pytest.mark.slow
def test_files_are_tuples_that_the_collector_does_not_track(busy: tuple[Session, InMemoryFilesystem, int]) -> None:
    _, fs, _ = busy
    leaves = [node for _, node in walk(fs.tree()) if not isinstance(node, FileTree)]
    assert len(leaves) == FILES
    assert not any(gc.is_tracked(node) for node in leaves)


def test_the_collector_tracks_little_for_many_writes(
    busy: tuple[Session, InMemoryFilesystem, int],
) -> None:
    _, fs, tracked = busy
    directories = fs.statistics().directory_count
    # A keyframe every 512 records keeps the directories that differ from the previous one.
    assert tracked < (WRITES // 512) * (2 * directories + 40) + 5_000
    assert tracked < WRITES / 2


def test_any_part_of_the_history_can_be_read(busy: tuple[Session, InMemoryFilesystem, int]) -> None:
    session, _, _ = busy
    for seq in (1, 511, 512, 513, WRITES // 2 + 321, WRITES):
        view = InMemoryFilesystem(session.at(seq))
        number = seq - 1
        path = f"/d{number % 20}/s{number % 50}/f{number % FILES}"
        assert view.read(path).content == f"content {number}\n"
        assert view.statistics().file_count == min(seq, FILES)


def test_versions_that_nothing_refers_to_are_freed() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/a/b", "first")
    before = collect()
    for number in range(400):
        fs.write("/a/b", f"content {number}")
    assert collect() - before < 40


@pytest.mark.usefixtures("traced")
def test_dropped_snapshots_and_compacted_records_free_their_contents() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write("/large", "x")
    session.snapshot("kept")
    for number in range(20):
        session.dispatch(FileWritten("/large", bytes([number]) * MIB, 1))
    snapshot = session.snapshot()
    fs.delete("/large")
    assert megabytes() == 20
    session.compact(keep=0)
    assert megabytes() == 1
    session.drop_snapshot(snapshot)
    assert fs.tree().node_count == 0  # an accessor keeps what it returned last
    assert megabytes() == 0
    session.rollback("kept")
    assert fs.read("/large").content == "x"


FIRST_SESSION = """
import tracemalloc
from weakfs import InMemoryFilesystem, Session
from weakfs.reducers import FileWritten

MIB = 1 << 20
session = Session()
fs = InMemoryFilesystem(session)
tracemalloc.start()

def show(what):
    print(what, tracemalloc.get_traced_memory()[0] // MIB)

for number in range(3):
    session.dispatch(FileWritten("/a", bytes([number]) * MIB, 1))
show("written")
session.compact(keep=0)
show("compacted")
session.rollback(session.seq)
del session, fs
show("end")
"""


def test_the_first_session_of_a_process_is_freed_like_any_other() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_SESSION], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["written 3", "compacted 1", "end 0"]


def test_five_thousand_appends_hold_only_what_they_added() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    for number in range(5_000):
        fs.append("/log", f"{number:06}\n")
    assert fs.stat("/log").size_bytes == 35_000
    assert fs.read("/log", offset=4_999).content == "004999\n"
    assert InMemoryFilesystem(session.at(10)).stat("/log").size_bytes == 70


@pytest.mark.slow
def test_a_very_long_unread_chain_of_appends_is_freed_without_recursion() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    for _ in range(50_000):
        fs.append("/log", "x")
    fs.delete("/log")
    session.compact(keep=0)
    gc.collect()
    assert fs.list() == ()


@pytest.mark.usefixtures("traced")
def test_a_session_and_its_files_are_freed_without_the_collector() -> None:
    session = Session()
    fs = InMemoryFilesystem(session)
    session.dispatch(FileWritten("/a", b"x" * MIB, 1))
    fork = session.fork()
    fs.bind(fork).write("/b", "x")
    session.merge(fork)
    with session.transaction():
        fs.write("/c", "x")
    session.rollback(session.snapshot())
    collect()
    gc.disable()
    try:
        assert megabytes() == 1
        del session, fs, fork
        assert megabytes() == 0
    finally:
        gc.enable()
