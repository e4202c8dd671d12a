"""Saving on a failing disk: at every call the old file stays, nothing is left over, and the error names the file."""

from __future__ import annotations

import errno
import gc
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from fixtures.sessions.portrait import portrait
from tests.faults.crashing import AT_ONCE, told
from tests.faults.syscalls import Call, System, raising
from weakfs import Session

TOP = Path(__file__).parents[2]
ERRORS = [errno.ENOSPC, errno.EIO, errno.EINTR, errno.EDQUOT, errno.EROFS, errno.ENOLCK]


def calls_of_a_save(path: Path) -> list[Call]:
    """Return the system calls of saving over an old file, which is restored afterwards."""
    old = path.read_bytes()
    with System(at_once=AT_ONCE, looking=True).in_force() as system:
        told("new").save(path)
    path.write_bytes(old)
    return system.calls


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("code", ERRORS, ids=lambda code: errno.errorcode[code])
def test_an_error_at_any_call_leaves_the_old_file_or_the_new_one(code: int, tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    new = told("new")
    told("old").save(path)
    old_bytes = path.read_bytes()
    new.save(tmp_path / "new.json")
    new_bytes = (tmp_path / "new.json").read_bytes()
    (tmp_path / "new.json").unlink()
    # Otherwise, objects that earlier tests left to the garbage collector would be closed in between.
    gc.collect()
    for call in calls_of_a_save(path):
        path.write_bytes(old_bytes)
        open_before = descriptors()
        error = OSError(code, os.strerror(code))
        with System(raising(call.number, error), at_once=AT_ONCE, looking=True).in_force() as system:
            try:
                new.save(path)
                raised = None
            except OSError as caught:
                raised = caught
        renamed = "rename" in [made.name for made in system.calls[: call.number]]
        assert path.read_bytes() == (new_bytes if renamed or raised is None else old_bytes), call
        assert descriptors() == open_before or call.name == "close"
        # A process that could not lock the temporary file does not remove it: it may be another's.
        assert names(tmp_path) == ["session.json"] or call.name in ("flock", "fstat", "stat")
        if raised is not None:
            assert raised.errno == code
            assert "session.json" in str(raised), call
        new.save(path)
        assert names(tmp_path) == ["session.json"]


def test_an_error_is_not_swallowed_at_any_changing_call(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    told("old").save(path)
    for call in calls_of_a_save(path):
        if call.name in ("open", "write", "ftruncate", "fchmod", "fsync", "rename", "flock"):
            disk = System(raising(call.number, OSError(errno.EIO, "failed")), at_once=AT_ONCE, looking=True)
            with disk.in_force(), pytest.raises(OSError, match="failed"):
                told("new").save(path)


def test_a_folder_that_cannot_be_synced_is_not_an_error(tmp_path: Path) -> None:
    path, session = tmp_path / "session.json", told("new")
    told("old").save(path)
    last = [call for call in calls_of_a_save(path) if call.name == "fsync"][-1]
    for code in (errno.EINVAL, errno.ENOTSUP):
        with System(raising(last.number, OSError(code, "no")), at_once=AT_ONCE, looking=True).in_force():
            session.save(path)
    assert portrait(Session.load(path)) == portrait(session)


def test_an_interruption_at_any_call_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    told("old").save(path)
    old_bytes = path.read_bytes()
    for call in calls_of_a_save(path):
        path.write_bytes(old_bytes)
        stopped = raising(call.number, KeyboardInterrupt())
        with System(stopped, at_once=AT_ONCE, looking=True).in_force() as system, pytest.raises(KeyboardInterrupt):
            told("new").save(path)
        renamed = "rename" in [made.name for made in system.calls[: call.number]]
        assert (path.read_bytes() == old_bytes) is not renamed
        assert len(names(tmp_path)) <= 2


@pytest.mark.parametrize("at_once", [1, 7, 4096])
def test_short_writes_are_continued(at_once: int, tmp_path: Path) -> None:
    session = told("short")
    session.save(tmp_path / "whole.json")
    with System(at_once=at_once).in_force():
        session.save(tmp_path / "session.json")
    assert (tmp_path / "session.json").read_bytes() == (tmp_path / "whole.json").read_bytes()


def test_a_value_that_cannot_be_saved_touches_no_file(tmp_path: Path) -> None:
    session = told("new")
    path = tmp_path / "session.json"
    session.save(path)
    before = path.read_bytes(), path.stat().st_mtime_ns
    session.attach(_Unsaved())
    session.snapshot()
    with System().in_force() as system, pytest.raises(Exception, match="object"):
        session.save(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert system.calls == []


class _Unsaved:
    """An external filesystem whose snapshots no file can hold."""

    filesystem_id = "odd"

    def snapshot(self, tag: str | None = None) -> object:
        return object()

    def restore(self, snapshot: object) -> None: ...

    def begin(self) -> _Unsaved:
        return self

    def undo(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path, None, None]:
    """Return a disk of 64 KiB, if mounting one is allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except FileNotFoundError:
        pytest.skip("there is no mount command here to make a small disk with")
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True, timeout=300)


def test_a_full_disk_keeps_the_old_file_and_frees_its_space(small_disk: Path) -> None:
    path = small_disk / "session.json"
    old = told("fits")
    old.save(path)
    free = os.statvfs(small_disk).f_bavail
    with pytest.raises(OSError, match=r"session\.json") as caught:
        told("does not fit " * 1000).save(path)
    assert caught.value.errno == errno.ENOSPC
    assert portrait(Session.load(path)) == portrait(old)
    assert os.statvfs(small_disk).f_bavail == free
    told("fits as well").save(path)


@pytest.mark.slow
def test_concurrent_saves_of_two_processes_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    words = ["first", "second, with rather more to say"]
    expected: set[bytes] = set()
    for text in words:
        told(text).save(path)
        expected.add(path.read_bytes())
    commands = [[sys.executable, "-m", "tests.faults.saving", str(path), text, "25"] for text in words]
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    running = [subprocess.Popen(one, cwd=TOP, env=environment, stdout=subprocess.PIPE, text=True) for one in commands]
    while any(process.poll() is None for process in running):
        assert path.read_bytes() in expected
    assert [process.communicate(timeout=300)[0] for process in running] == ["", ""]
    assert [process.returncode for process in running] == [0, 0]
    assert path.read_bytes() in expected
    assert names(tmp_path) == ["session.json"]


def test_concurrent_saves_of_threads_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    session = told("threads")
    session.save(path)
    whole = path.read_bytes()
    failures: list[BaseException] = []

    def saving() -> None:
        try:
            for _ in range(20):
                session.save(path)
                assert path.read_bytes() == whole
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=saving) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert names(tmp_path) == ["session.json"]
