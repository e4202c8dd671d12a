"""Runtimes, containers and monitors that are killed: files are as before or after a call; nothing is left running."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread, Timer

import pytest

from tests.containers import IMAGE, state
from tests.sampling import is_exhaustive
from weakfs import Session
from weakfs.backends.container import (
    ContainerFilesystem,
    Podman,
    PodmanError,
    PodmanUnavailable,
    containers,
    remove_unused,
)
from weakfs.backends.container.lifecycle import replacement
from weakfs.backends.container.lifecycle.conmon import monitors_of
from weakfs.backends.container.lifecycle.listing import of_sessions
from weakfs.backends.container.lifecycle.podman import _prefix

TOP = Path(__file__).parents[2]

# The moments at which something is killed, a few milliseconds apart.
MOMENTS = range(12) if is_exhaustive() else (7,)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("never_hung")]

# Each call sets two files to the same number, slowly enough to be interrupted.
RUNTIME = """
import sys
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, Podman

image, folder, *options = sys.argv[1:]
session = Session.load(f"{folder}/session.json")
files = ContainerFilesystem(session, image=image, store=f"{folder}/store", runtime=Podman(options=tuple(options)))
print("ready", flush=True)
for number in range(1000):
    files.exec(f"echo {number} > a; rm -rf tree; cp -r /usr/lib tree; (setsid sleep 60 &); echo {number} > b")
"""


def test_a_runtime_that_is_killed_leaves_files_as_before_or_after_a_call(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    files = ContainerFilesystem(session, image=IMAGE, store=tmp_path / "store", runtime=podman)
    files.exec("echo start > a; echo start > b")
    session.save(tmp_path / "session.json")
    files.container.close()
    try:
        for moment in MOMENTS:
            words = [sys.executable, "-c", RUNTIME, IMAGE, str(tmp_path), *podman.options]
            with subprocess.Popen(words, cwd=TOP, stdout=subprocess.PIPE) as runtime:
                assert runtime.stdout is not None
                assert runtime.stdout.readline() == b"ready\n"
                time.sleep(moment * 0.007)
                runtime.kill()
            until_ended(files)
            loaded = Session.load(tmp_path / "session.json")
            files = ContainerFilesystem(loaded, image=IMAGE, store=tmp_path / "store", runtime=podman)
            assert files.read("a").content == files.read("b").content
            assert files.container._supervisor.processes() == []
            files.container.close()
    finally:
        files.container.remove()


def until_ended(files: ContainerFilesystem) -> None:
    """Wait until a container has ended by itself."""
    while monitors_of(files.container.container_id):
        time.sleep(0.005)


HOLDING = """
import sys
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, Podman

image, folder, *options = sys.argv[1:]
session = Session.load(f"{folder}/session.json")
podman = Podman(options=tuple(options))
files = ContainerFilesystem(
    session, image=image, store=f"{folder}/store", runtime=podman, capabilities=["dac_override"]
)
print("ready", flush=True)
files.exec("exec 9>/run/weakfs/requests; echo x > held; sleep 1000", timeout=1000)
"""


@pytest.mark.parametrize("then", ["open", pytest.param("remove", marks=pytest.mark.exhaustive)])
def test_a_command_that_holds_the_requests_of_a_killed_runtime_ends_with_the_next_one(
    podman: Podman, tmp_path: Path, then: str
) -> None:
    session = Session()
    session.save(tmp_path / "session.json")
    words = [sys.executable, "-c", HOLDING, IMAGE, str(tmp_path), *podman.options]
    with subprocess.Popen(words, cwd=TOP, stdout=subprocess.PIPE) as runtime:
        assert runtime.stdout is not None
        assert runtime.stdout.readline() == b"ready\n"
        (inspected,) = of_sessions(podman, session_id=session.session_id)
        while not Path(f"/proc/{inspected.pid}/root/workspace/held").exists():
            time.sleep(0.005)
        runtime.kill()
    # A capability permits this access: without it, no command can read the requests.
    assert Path(f"/proc/{inspected.pid}/root/workspace/held").exists()
    if then == "open":
        loaded = Session.load(tmp_path / "session.json")
        files = ContainerFilesystem(loaded, image=IMAGE, store=tmp_path / "store", runtime=podman)
        assert not files.exists("held")
        assert files.exec("ps -o comm").stdout.count("sleep") == 0
        files.container.remove()
    else:
        assert len(remove_unused(podman, session_id=session.session_id)) == 1
    assert monitors_of(inspected.container_id) == []
    assert not Path(f"/proc/{inspected.pid}/root/workspace").exists()


@pytest.fixture
def files(podman: Podman, tmp_path: Path) -> ContainerFilesystem:
    return ContainerFilesystem(Session(), image=IMAGE, store=tmp_path, runtime=podman)


def test_a_killed_container_is_restored_and_started_again(files: ContainerFilesystem) -> None:
    try:
        files.exec("echo kept > kept")
        before = state(files)
        first = files.container._inspect().pid

        def kill_in_the_middle() -> None:
            while Path(f"/proc/{first}/root/workspace/kept").exists():
                time.sleep(0.001)
            os.kill(first, signal.SIGKILL)

        killer = Thread(target=kill_in_the_middle)
        killer.start()
        with pytest.raises(OSError, match="killed from outside"):
            files.exec("rm -r kept /usr/lib; sleep 1000")
        killer.join()
        assert state(files) == before
        assert files.exec("cat kept").stdout == "kept\n"
        assert files.container._inspect().pid != first
    finally:
        files.container.remove()


@pytest.mark.parametrize("is_stopped", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_a_container_that_ended_without_its_monitor_is_replaced(files: ContainerFilesystem, is_stopped: bool) -> None:
    try:
        files.exec("echo kept > kept; rm -r /usr/lib/pkg; mkdir /usr/lib/pkg; mkfifo fifo")
        before = state(files)
        inspected = files.container._inspect()
        os.kill(inspected.monitor, signal.SIGKILL)
        os.kill(inspected.pid, signal.SIGKILL)
        while files.container.is_running:
            time.sleep(0.001)
        if is_stopped:
            # Podman waits for the monitor in vain, and from then on considers the container to be stopping.
            files.container.podman._run(("stop", inspected.container_id), None)
        assert state(files) == before
        assert files.exec("cat kept").stdout == "kept\n"
        assert is_stopped or files.container.container_id != inspected.container_id
        assert len(containers(files.container.podman, session_id=files.session.session_id)) == 1
        files.container.stop()
        assert state(files) == before
    finally:
        files.container.remove()
    assert containers(files.container.podman, session_id=files.session.session_id) == ()


@pytest.mark.exhaustive
@pytest.mark.parametrize("is_moved", [False, True])
def test_an_interrupted_replacement_is_finished_by_the_next_process(
    podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_moved: bool
) -> None:
    session = Session()
    files = ContainerFilesystem(session, image=IMAGE, store=tmp_path, runtime=podman)
    files.exec("echo kept > kept")
    session.save(tmp_path / "session.json")
    inspected = files.container._inspect()
    for pid in (inspected.monitor, inspected.pid):
        os.kill(pid, signal.SIGKILL)

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    if is_moved:
        monkeypatch.setattr(Podman, "remove", cut)
    else:
        monkeypatch.setattr(replacement, "_layer", cut)
    with pytest.raises(KeyboardInterrupt):
        while True:
            files.read("kept")
    monkeypatch.undo()
    assert len(containers(podman, session_id=session.session_id)) == 2
    files.container.close()

    again = ContainerFilesystem(Session.load(tmp_path / "session.json"), image=IMAGE, store=tmp_path, runtime=podman)
    try:
        assert again.exec("cat kept").stdout == "kept\n"
        assert len(containers(podman, session_id=session.session_id)) == 1
    finally:
        again.container.remove()


@pytest.mark.parametrize("step", ["_layer", "unmount", "remove"])
def test_a_replacement_that_fails_is_finished_by_the_next_call(
    files: ContainerFilesystem, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    try:
        files.exec("echo kept > kept")
        before, inspected = state(files), files.container._inspect()
        for pid in (inspected.monitor, inspected.pid):
            os.kill(pid, signal.SIGKILL)

        def fail(*_: object) -> None:
            raise PodmanUnavailable("cannot run podman: it is broken")

        monkeypatch.setattr(replacement if step == "_layer" else Podman, step, fail)
        while files.container.is_running:
            time.sleep(0.001)
        for _ in range(2):
            with pytest.raises(PodmanUnavailable, match="is broken"):
                files.read("kept")
        monkeypatch.undo()
        assert files.exec("cat kept").stdout == "kept\n"
        assert state(files) == before
        assert len(containers(files.container.podman, session_id=files.session.session_id)) == 1
    finally:
        files.container.remove()


@pytest.mark.parametrize("then", ["open", pytest.param("remove", marks=pytest.mark.exhaustive)])
def test_a_call_that_outlived_its_runtime_is_ended_by_the_next_one(podman: Podman, tmp_path: Path, then: str) -> None:
    session = Session()
    files = ContainerFilesystem(session, image=IMAGE, store=tmp_path / "store", runtime=podman)
    files.exec("echo kept > kept")
    session.save(tmp_path / "session.json")
    files.close()
    program = tmp_path / "podman"
    program.write_text("#!/bin/sh\nsleep 1000\n")
    program.chmod(0o755)
    calls = [
        subprocess.Popen([str(program), *podman.options, *words, files.container.container_id], start_new_session=True)
        for words in (["start"], ["rm", "--force"], ["container", "inspect"])
    ]
    try:
        if then == "open":
            loaded = Session.load(tmp_path / "session.json")
            again = ContainerFilesystem(loaded, image=IMAGE, store=tmp_path / "store", runtime=podman)
            assert again.read("kept").content == "kept\n"
            again.container.remove()
        else:
            assert len(remove_unused(podman, session_id=session.session_id)) == 1
        assert [one.wait(60) for one in calls[:2]] == [-signal.SIGKILL] * 2
        assert calls[2].poll() is None
    finally:
        for one in calls:
            with suppress(ProcessLookupError):
                os.killpg(one.pid, signal.SIGKILL)
            one.wait()


def test_a_container_whose_layer_is_gone_is_not_started_empty(files: ContainerFilesystem, tmp_path: Path) -> None:
    try:
        files.exec("echo kept > kept")
        upper = files.container._inspect().upper
        assert upper is not None
        files.container.stop()
        until_ended(files)
        os.rename(upper, tmp_path / "layer")
        with pytest.raises(PodmanError, match="its files are no longer in"):
            files.read("kept")
        os.rename(tmp_path / "layer", upper)
        assert files.read("kept").content == "kept\n"
    finally:
        files.container.remove()


@pytest.mark.exhaustive
def test_a_client_of_podman_that_is_killed_can_be_called_again(podman: Podman, tmp_path: Path) -> None:
    for moment in MOMENTS:
        session, first = Session(), 0.05 + 0.05 * moment
        timers = [Timer(first + later, _kill_clients) for later in (0, 0.7)]
        for timer in timers:
            timer.start()
        while True:
            with suppress(OSError):
                files = ContainerFilesystem(session, image=IMAGE, store=tmp_path / str(moment), runtime=podman)
                break
        try:
            while any(timer.is_alive() for timer in timers):
                with suppress(OSError):
                    files.container.stop()
                    assert files.exec("echo kept > kept; cat kept").stdout == "kept\n"
            assert files.exec("echo kept > kept; cat kept").stdout == "kept\n"
        finally:
            files.container.remove()
        assert containers(podman, session_id=session.session_id) == ()
        assert monitors_of(files.container.container_id) == []


@pytest.mark.parametrize("then", ["start", pytest.param("remove", marks=pytest.mark.exhaustive)])
def test_processes_left_by_a_client_killed_while_starting_a_container_are_ended(
    files: ContainerFilesystem, then: str
) -> None:
    container = files.container
    try:
        files.exec("echo kept > kept")
        container.stop()
        until_ended(files)
        words = [*_prefix(), shutil.which("podman") or "", *container.podman.options, "start", container.container_id]
        with subprocess.Popen(words, start_new_session=True, stdout=subprocess.DEVNULL) as client:
            while not (left := monitors_of(container.container_id)):
                time.sleep(0.001)
            os.killpg(client.pid, signal.SIGKILL)
        # Nothing waits for the client any more, or the container ends because it has no runtime.
        if then == "start":
            assert files.exec("cat kept").stdout == "kept\n"
            (monitor,) = monitors_of(container.container_id)
            assert monitor == container._inspect().monitor
            assert monitor not in left
    finally:
        container.remove()
    assert monitors_of(container.container_id) == []
    assert containers(container.podman, session_id=files.session.session_id) == ()


def _kill_clients() -> None:
    """Kill the programs that this process is waiting for."""
    for thread in os.listdir("/proc/self/task"):
        with suppress(OSError):
            for pid in Path(f"/proc/self/task/{thread}/children").read_text().split():
                if b"podman" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(int(pid), signal.SIGKILL)


PROCESSES = """
import sys, time
from weakfs import Session, Toolset
from weakfs.backends.container import ContainerFilesystem, Podman
from weakfs.tools.handlers import process_tools

image, folder, *options = sys.argv[1:]
session = Session.load(f"{folder}/session.json")
files = ContainerFilesystem(session, image=image, store=f"{folder}/store", runtime=Podman(options=tuple(options)))
tools = Toolset(session, files, tools=process_tools())
print("ready", flush=True)
for number in range(3):
    answer = tools.call("process_start", {"command": "(env -i setsid sleep 1000 &) ; trap '' TERM; sleep 1000; :"})
    assert answer.success, answer.message
print("started", flush=True)
time.sleep(1000)
"""


def test_a_runtime_that_is_killed_leaves_no_process_of_its_container(podman: Podman, tmp_path: Path) -> None:
    session = Session()
    files = ContainerFilesystem(session, image=IMAGE, store=tmp_path / "store", runtime=podman)
    files.exec("echo kept > kept")
    session.save(tmp_path / "session.json")
    files.container.close()
    try:
        for moment in MOMENTS:
            words = [sys.executable, "-c", PROCESSES, IMAGE, str(tmp_path), *podman.options]
            with subprocess.Popen(words, cwd=TOP, stdout=subprocess.PIPE) as runtime:
                assert runtime.stdout is not None
                assert runtime.stdout.readline() == b"ready\n"
                if moment == MOMENTS[-1]:
                    assert runtime.stdout.readline() == b"started\n"
                else:
                    time.sleep(moment * 0.01)
                runtime.kill()
            until_ended(files)
            loaded = Session.load(tmp_path / "session.json")
            files = ContainerFilesystem(loaded, image=IMAGE, store=tmp_path / "store", runtime=podman)
            assert files.exec("cat kept; ps -o comm").stdout.split()[:1] == ["kept"]
            assert files.container._supervisor.processes() == []
            files.container.close()
    finally:
        files.container.remove()


@pytest.mark.exhaustive
def test_a_monitor_that_is_killed_does_no_harm(files: ContainerFilesystem) -> None:
    try:
        files.exec("echo kept > kept")
        os.kill(files.container._inspect().monitor, signal.SIGKILL)
        with pytest.raises(TimeoutError):
            files.exec("rm -r kept /usr/lib; sleep 60", timeout=0.3)
        assert files.exec("cat kept").stdout == "kept\n"
        files.container.stop()
        assert files.exec("cat kept; rm kept").stdout == "kept\n"
        files.session.rollback(files.session.seq - 1)
        assert files.exec("cat kept").stdout == "kept\n"
    finally:
        files.container.remove()
