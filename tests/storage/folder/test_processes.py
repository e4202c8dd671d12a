"""Several threads and processes on one stream: locks, conflicts, forks, group commit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.storage.folder.journals import STREAM
from weakfs.storage import Checkpoint, LeaseLost, StorageError, StreamConflict
from weakfs.storage.folder import FolderEventStore
from weakfs.storage.folder import files as files_module
from weakfs.storage.folder.journal.journal import create_segment
from weakfs.storage.folder.stream import locked_stream
from weakfs.storage.folder.stream import stream as stream_module
from weakfs.storage.stream_handle import StreamHandle

# Appends its own frames until it has appended this many; the number of the head decides whose turn it is.
WRITER = """
import sys
from weakfs.storage import StreamConflict
from weakfs.storage.folder import FolderEventStore

path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store, done, conflicts = FolderEventStore(path, segment_size=2000), 0, 0
head = store.head("s")
while done < count:
    data = f"{name} {done}".encode()
    try:
        head = store.append("s", head, [data], contents={data.hex(): data * 3})
        done += 1
    except StreamConflict as conflict:
        head, conflicts = conflict.actual, conflicts + 1
print(conflicts)
"""


def test_processes_that_append_at_once_lose_nothing(tmp_path: Path) -> None:
    count = 100
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name, str(count)], stdout=subprocess.PIPE)
        for name in "abc"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.close()
    store = FolderEventStore(tmp_path)
    frames = [frame.data.decode() for frame in store.read(STREAM)]
    for name in "abc":
        assert [frame for frame in frames if frame[0] == name] == [f"{name} {number}" for number in range(count)]
    digests = [frame.encode().hex() for frame in frames]
    assert store.has_contents(STREAM, digests) == set(digests)


@pytest.mark.parametrize("stream", [STREAM, StreamHandle(STREAM)])
@pytest.mark.parametrize("first", [[b"first"], [], [b"same"]])
def test_a_stream_that_another_process_creates_first_is_appended_to_only_if_it_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: str, first: list[bytes]
) -> None:
    other = FolderEventStore(tmp_path)

    def create_later(*arguments: Any) -> None:
        # Another process is faster.
        monkeypatch.undo()
        other.append(STREAM, 0, first, contents={"ab": b"1"})
        create_segment(*arguments)

    monkeypatch.setattr(locked_stream, "create_segment", create_later)
    store = FolderEventStore(tmp_path)
    if first == [b"first"]:
        with pytest.raises(StreamConflict) as caught:
            store.append(stream, 0, [b"same"])
        assert (caught.value.expected, caught.value.actual) == (0, 1)
    else:
        assert store.append(stream, 0, [b"same"]) == 1
    assert [frame.data for frame in other.read(STREAM)] == (first or [b"same"])


def test_a_lease_that_another_process_takes_before_a_stream_is_created_is_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = FolderEventStore(tmp_path)

    def create_later(*arguments: Any) -> None:
        monkeypatch.undo()
        other.lease(STREAM, "other", 60)
        create_segment(*arguments)

    monkeypatch.setattr(locked_stream, "create_segment", create_later)
    with pytest.raises(LeaseLost):
        FolderEventStore(tmp_path).append(STREAM, 0, [b"1"])
    assert other.head(STREAM) == 0


def test_a_stopped_process_delays_others_only_up_to_the_timeout(tmp_path: Path) -> None:
    code = """
import os, signal, sys
from weakfs.storage.folder import FolderEventStore, files
store = FolderEventStore(sys.argv[1])
store.append("s", 0, [b"a"])
real = os.pwrite
def stop(*arguments):
    print("stopping", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    return real(*arguments)
os.pwrite = stop
store.append("s", 1, [b"b"])
"""
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"stopping\n"
        store = FolderEventStore(tmp_path, lock_timeout=0.05)
        with pytest.raises(StorageError, match=r"another process has held the lock .* check whether it hangs"):
            store.append(STREAM, 1, [b"c"])
        # If it were continued before it stops, it would stay stopped forever.
        os.waitid(os.P_PID, writer.pid, os.WSTOPPED | os.WNOWAIT)
        os.kill(writer.pid, signal.SIGCONT)
        assert writer.wait() == 0
    assert FolderEventStore(tmp_path).append(STREAM, 2, [b"c"]) == 3
    assert store.head(STREAM) == 3


def test_a_process_that_was_forked_does_not_share_the_lock(tmp_path: Path) -> None:
    code = """
import os, sys
from weakfs.storage.folder import FolderEventStore
store = FolderEventStore(sys.argv[1])
store.append("s", 0, [b"a"])
stream = store._stream("s")
with stream.locked():
    child = os.fork()
    if child == 0:
        # The parent holds the lock; a child with the same descriptor would pass it.
        try:
            FolderEventStore.__init__.__kwdefaults__["lock_timeout"] = 0.05
            store._options = type(store._options)(False, 1 << 20, 0.05, store._options.clock)
            store.append("s", 1, [b"child"])
        except OSError as error:
            os._exit(7 if "has held the lock" in str(error) else 8)
        os._exit(9)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(status, store.append("s", 1, [b"b"]))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("7 2\n", "")


def test_the_error_of_the_losing_append_has_both_numbers(tmp_path: Path) -> None:
    first, second = FolderEventStore(tmp_path), FolderEventStore(tmp_path)
    first.append(STREAM, 0, [b"a"])
    assert second.head(STREAM) == 1
    first.append(STREAM, 1, [b"b", b"c"])
    with pytest.raises(StreamConflict) as caught:
        second.append(STREAM, 1, [b"x"], contents={"ab": b"1"})
    assert (caught.value.expected, caught.value.actual) == (1, 3)
    assert first.has_contents(STREAM, ["ab"]) == set()


def test_waiting_appends_share_one_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderEventStore(tmp_path, "power")
    store.append(STREAM, 0, [b"first"])
    is_begun, may_end, syncs = threading.Event(), threading.Event(), 0
    real = files_module.sync_file

    def slow(file: files_module.Descriptor) -> None:
        nonlocal syncs
        syncs += 1
        is_begun.set()
        assert may_end.wait(60)
        real(file)

    monkeypatch.setattr(stream_module, "sync_file", slow)
    with ThreadPoolExecutor(9) as pool:
        leader = pool.submit(store.append, STREAM, 1, [b"leader"])
        assert is_begun.wait(60)
        followers = []
        for number in range(2, 10):
            followers.append(pool.submit(store.append, STREAM, number, [b"follower"]))
            while store.head(STREAM) <= number:
                pass
        assert not any(follower.done() for follower in [leader, *followers])
        may_end.set()
        assert [leader.result(), *(follower.result() for follower in followers)] == list(range(2, 11))
    # One for the append in progress, and one for all that arrived in the meantime.
    assert syncs == 2


def test_a_stream_that_was_deleted_and_created_again_is_synced_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderEventStore(tmp_path, "power")
    store.append(STREAM, 0, [b"long" * 1000])
    store.delete(STREAM)
    synced: list[object] = []
    monkeypatch.setattr(stream_module, "sync_file", synced.append)
    for number in range(3):
        store.append(STREAM, number, [b"short"])
        assert len(synced) == number + 1


def test_a_stream_that_is_deleted_while_it_is_synced_can_be_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = FolderEventStore(tmp_path, "manual"), FolderEventStore(tmp_path)
    sync_file = files_module.sync_file

    def sync_after_deletion(file: Any) -> None:
        monkeypatch.undo()
        other.delete(STREAM)
        sync_file(file)

    store.append(STREAM, 0, [b"1"])
    monkeypatch.setattr(stream_module, "sync_file", sync_after_deletion)
    store.flush()
    assert store.head(STREAM) == 0
    assert store.append(STREAM, 0, [b"2"]) == 1


def test_only_durability_power_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, synced.append)
    for durability, is_synced in (("process", False), ("manual", False), ("power", True)):
        store = FolderEventStore(tmp_path / durability, durability)  # type: ignore[arg-type]  # one of the literals
        for number in range(5):
            store.append(STREAM, number, [b"frame"])
        assert (len(synced) >= 5) == is_synced
        store.flush()
        assert (len(synced) > 0) == (durability != "nothing")
        synced.clear()
        store.flush()
        assert synced == []


def test_a_lease_that_expired_by_the_clock_is_taken_over(tmp_path: Path) -> None:
    now = [1000.0]
    store, other = (FolderEventStore(tmp_path, clock=lambda: now[0]) for _ in range(2))
    lease = store.lease(STREAM, "one", 10)
    now[0] += 9
    with pytest.raises(LeaseLost):
        other.lease(STREAM, "two", 10)
    assert store.lease(STREAM, "one", 10).fencing == lease.fencing
    now[0] += 9
    with pytest.raises(LeaseLost):
        other.append(STREAM, 0, [b"without a lease"])
    now[0] += 2
    taken = other.lease(STREAM, "two", 10)
    assert taken.fencing == lease.fencing + 1
    with pytest.raises(LeaseLost):
        store.append(STREAM, 0, [b"late"], fencing=lease.fencing)
    store.release(lease)
    assert other.append(STREAM, 0, [b"a"], fencing=taken.fencing) == 1


def test_a_lease_outlives_a_deleted_lease_file_and_new_segments(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path, segment_size=1)
    lease = store.lease(STREAM, "one", 0)
    for number in range(5):
        store.append(STREAM, number, [b"frame"])
    (tmp_path / "s.stream" / "lease").unlink()
    assert FolderEventStore(tmp_path).lease(STREAM, "two", 0).fencing == lease.fencing + 1


def test_opening_reads_what_follows_the_newest_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderEventStore(tmp_path)
    for number in range(30):
        store.append(STREAM, number, [b"frame" * 20_000])
    store.put_checkpoint(STREAM, Checkpoint(30, b"state"))
    store.append(STREAM, 30, [b"last"])
    read = 0
    real = os.pread

    def count(file: int, size: int, offset: int) -> bytes:
        nonlocal read
        data = real(file, size, offset)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", count)
    again = FolderEventStore(tmp_path)
    assert again.head(STREAM) == 31
    assert again.get_checkpoint(STREAM) == (30, b"state")
    assert list(again.read(STREAM, after=30)) == [(31, b"last")]
    assert read < 300_000


def test_many_open_streams_use_few_descriptors(tmp_path: Path) -> None:
    store = FolderEventStore(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(200):
        store.append(f"s{number}", 0, [b"frame"])
    assert len(os.listdir("/proc/self/fd")) - before < 2 * 64 + 10
    assert store.append("s0", 1, [b"more"]) == 2
    store.flush()
    store.close()
    assert len(os.listdir("/proc/self/fd")) <= before
