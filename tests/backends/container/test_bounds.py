"""Waiting for processes that never answer or never end: each wait ends with an error that says what to do."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.containers import IMAGE
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, ContainerOptions, Podman, PodmanError
from weakfs.backends.container.commands import program
from weakfs.backends.container.lifecycle import conmon, find_or_create
from weakfs.backends.container.lifecycle.conmon import command_of
from weakfs.backends.container.lifecycle.container import mark_of
from weakfs.platforms import fcntl
from weakfs.processes import CommandOptions
from weakfs.processes.background import ProcessLimits


def test_a_monitor_that_cannot_be_killed_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(conmon, "monitors_of", lambda _: [7])
    monkeypatch.setattr(conmon, "_watches", lambda *_: True)
    monkeypatch.setattr(conmon, "_kill", killed.append)
    monkeypatch.setattr(conmon, "ENDING", 0.0)
    with pytest.raises(
        PodmanError, match="cannot stop the container '0123456789ab': its monitor, process 7, cannot be"
    ):
        conmon.end_monitors("0123456789abcdef")
    assert killed == [7]


def test_a_process_that_never_finishes_opening_a_container_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_or_create, "PATIENCE", 0.0)
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(OSError, match="cannot open the container 'mine': another process has been opening a container"):
        find_or_create.open_container(
            Podman(), ContainerOptions(image=IMAGE), session_id="s", name="mine", state=str(tmp_path)
        )
    os.close(other)


@pytest.mark.slow
@pytest.mark.usefixtures("never_hung")
def test_a_process_whose_supervisor_does_not_answer_ends(
    podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("run", "--detach", "--network", "none", *podman.creation, IMAGE, "/bin/sh", "-c", "sleep 2000; :")
    name = podman.run(*words).decode().strip()
    files = ContainerFilesystem(container=name, session=Session(), store=tmp_path, runtime=podman)
    try:
        files.exec("true")
        mark = mark_of(files.container._path).encode()
        (pid,) = (int(one) for one in os.listdir("/proc") if one.isdigit() and mark in command_of(int(one))[-1:])
        os.kill(pid, signal.SIGSTOP)
        monkeypatch.setattr(program, "KILLING", 0.0)

        limits = ProcessLimits(grace=0.01)
        process, _ = files.background.start("echo x > late", "/workspace", CommandOptions(), limits)
        process.end("it is not needed")
        assert process.wait(None)

        os.kill(pid, signal.SIGCONT)
        while files.container._supervisor._unread() or files.container._supervisor.processes():
            time.sleep(0.001)
        assert files.exec("ls late").exit_code != 0
    finally:
        files.container.close()
        podman.run("rm", "--force", "--time", "0", name)
