"""Which processes a supervisor finds in a container: all that commands have started, whatever they do meanwhile."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from weakfs.backends.container.commands import process_list, supervisor
from weakfs.backends.container.commands.command_files import CommandFiles
from weakfs.backends.container.commands.process_list import ProcessList, path_in

MARK = "WEAKFS_COMMAND=1"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[ProcessList]:
    """The processes of a foreign container, whose `/proc` is a directory of the test."""
    made = ProcessList(os.getpid(), only="1")
    made.close()
    made._proc = os.open(tmp_path, os.O_RDONLY)
    start(tmp_path, 1, "")
    yield made
    made.close()


def start(
    proc: Path, pid: int, variables: str = f"A=b\0{MARK}\0", state: str = "S", arguments: str = "sleep\0"
) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "exe").symlink_to("/bin/sleep")
    (proc / str(pid) / "cmdline").write_text(arguments)
    (proc / str(pid) / "stat").write_text(f"{pid} (a name) {state} 1 1" + " 0" * 14 + " 1 0 77")
    (proc / str(pid) / "environ").write_text(variables)


def test_living_processes_with_the_mark_are_listed(processes: ProcessList, tmp_path: Path) -> None:
    start(tmp_path, 10)
    start(tmp_path, 11, "OTHER=1\0")
    start(tmp_path, 12, state="Z")
    start(tmp_path, 13, "")
    start(tmp_path, 14)
    assert sorted(processes.all()) == [10, 14]


def test_a_process_whose_parent_died_during_the_listing_is_found(
    processes: ProcessList, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, 10)
    listdir = os.listdir

    def list_then_fork(place: int) -> list[str]:
        monkeypatch.undo()
        names = listdir(place)
        shutil.rmtree(tmp_path / "10")
        start(tmp_path, 11)
        return names

    monkeypatch.setattr(os, "listdir", list_then_fork)
    assert sorted(processes.all()) == [11]


def test_a_process_that_is_about_to_exec_another_program_is_found(
    processes: ProcessList, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, 10, "")
    monkeypatch.setattr(time, "sleep", lambda _: (tmp_path / "10" / "environ").write_text(MARK))
    assert sorted(processes.all()) == [10]


def test_a_process_that_takes_long_to_exec_is_found(
    processes: ProcessList, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, 10, "", arguments="")
    pauses = iter(range(1000))

    def go_on_at_last(seconds: float) -> None:
        if next(pauses) == 999:
            (tmp_path / "10" / "environ").write_text(MARK)

    monkeypatch.setattr(time, "sleep", go_on_at_last)
    assert sorted(processes.all()) == [10]


def test_processes_that_hide_their_arguments_are_waited_for_once_and_together(
    processes: ProcessList, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid in range(10, 20):
        start(tmp_path, pid, "", arguments="")
    start(tmp_path, 20)
    pauses = [0]

    def pause(seconds: float) -> None:
        pauses[0] += 1

    monkeypatch.setattr(time, "sleep", pause)
    monkeypatch.setattr(process_list, "EXECUTING", 100)
    for _ in range(3):
        assert sorted(processes.all()) == [20]
    assert pauses == [100]


def test_a_process_that_dies_is_not_waited_for(
    processes: ProcessList, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(tmp_path, 10, "", arguments="")
    dead = "10 (a name) Z 1 1" + " 0" * 14 + " 1 0 77"
    monkeypatch.setattr(time, "sleep", lambda _: (tmp_path / "10" / "stat").write_text(dead))
    assert processes.all() == {}


# A process whose first thread ends while another one runs.
WITHOUT_FIRST_THREAD = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print("ready", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root reads the variables of such a process"
)
def test_a_process_whose_first_thread_has_ended_is_found() -> None:
    mark = secrets.token_hex(8)
    processes = ProcessList(os.getpid(), only=mark)
    words = [sys.executable, "-c", WITHOUT_FIRST_THREAD]
    with subprocess.Popen(words, env={"WEAKFS_COMMAND": mark}, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            while b" Z " not in Path(f"/proc/{process.pid}/stat").read_bytes():
                time.sleep(0.001)
            assert sorted(processes.all()) == [process.pid]
        finally:
            process.kill()
    assert processes.all() == {}
    processes.close()


def test_processes_that_fork_faster_than_they_are_listed_are_not_considered_dead(
    processes: ProcessList, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes._only = ""
    pids = iter(range(10, 1000))
    monkeypatch.setattr(os, "listdir", lambda _: ["1", str(next(pids))])
    assert len(processes.all()) == 1


# Links in place of FIFOs


@pytest.mark.parametrize("swapped", ["status", "out", "err"])
def test_a_link_in_place_of_a_fifo_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    secret.chmod(0o600)
    control = os.open(tmp_path, os.O_RDONLY)
    mkfifo = os.mkfifo

    def make_and_swap(name: str, *, dir_fd: int) -> None:
        mkfifo(name, dir_fd=dir_fd)
        if name == swapped:
            os.unlink(name, dir_fd=dir_fd)
            os.symlink(secret, name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkfifo", make_and_swap)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        CommandFiles(control, "", takes_input=False)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    os.close(control)


# Mounts


@pytest.mark.parametrize(
    ("written", "path"),
    [
        (b"/a\\040b\\011c\\012d", "/a b\tc\nd"),
        ("/w\u00f6rk\u00a0\u3000/x".encode(), "/w\u00f6rk\u00a0\u3000/x"),
        (b"/\xff\\134", "/\uf7ff\uf75c"),
    ],
)
def test_a_mount_point_may_have_any_name(written: bytes, path: str) -> None:
    assert path_in(b"22 1 0:21 / %s rw,nosuid - tmpfs tmpfs rw\n" % written) == path


# Connecting


def test_a_command_waits_for_a_supervisor_that_starts_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor.make_control(str(tmp_path / "control"), None)
    control, reader = os.open(tmp_path / "control", os.O_RDONLY), [-1]

    def start_supervisor(seconds: float) -> None:
        reader[0] = os.open(supervisor.REQUESTS, os.O_RDONLY | os.O_NONBLOCK, dir_fd=control)

    monkeypatch.setattr(time, "sleep", start_supervisor)
    made = supervisor.Supervisor(control, os.getpid(), "mark", is_running=lambda: True, end=None, exceeded=lambda: None)
    made.request("run it")
    assert os.read(reader[0], 100) == b"\nrun it\n"
    made.close()
    assert os.read(reader[0], 100) == b""
    os.close(control)
    os.close(reader[0])


def test_a_supervisor_ends_when_its_lifeline_is_closed(tmp_path: Path) -> None:
    supervisor.make_control(str(tmp_path / "control"), None)
    control = os.open(tmp_path / "control", os.O_RDONLY)
    lifeline = supervisor.lifeline(control)
    words = ["/bin/sh", "-c", supervisor.script(), "sh", str(tmp_path / "control"), "mark"]
    with subprocess.Popen(words, start_new_session=True) as process:
        supervisor.Supervisor(
            control, os.getpid(), "mark", is_running=lambda: True, end=None, exceeded=lambda: None
        ).close()
        assert process.poll() is None
        os.close(lifeline)
        assert process.wait(60) == -signal.SIGKILL
    # Its host is gone before it starts.
    with subprocess.Popen(words, start_new_session=True) as process:
        assert process.wait(60) == -signal.SIGKILL
    os.close(control)


@pytest.mark.parametrize("failing", ["_protect", "_open_list"])
def test_a_failed_connection_does_not_keep_a_supervisor_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    supervisor.make_control(str(tmp_path / "control"), None)
    control = os.open(tmp_path / "control", os.O_RDONLY)
    reader = os.open(supervisor.REQUESTS, os.O_RDONLY | os.O_NONBLOCK, dir_fd=control)

    def fail(*_: object) -> None:
        raise TimeoutError("it does not answer")

    monkeypatch.setattr(supervisor.Supervisor, failing, fail)
    with pytest.raises(TimeoutError):
        supervisor.Supervisor(control, os.getpid(), "mark", is_running=bool, end=lambda: None, exceeded=lambda: None)
    # The end of the stream: nothing holds the other end open.
    assert os.read(reader, 1) == b""
    os.close(reader)
    os.close(control)


def test_the_error_for_a_container_that_has_just_ended_names_the_remedy(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    supervisor.make_control(str(tmp_path / "control"), None)
    control = os.open(tmp_path / "control", os.O_RDONLY)
    with pytest.raises(OSError, match="it has ended; try again"):
        supervisor.Supervisor(control, process.pid, "mark", is_running=bool, end=None, exceeded=lambda: None)
    os.close(control)
