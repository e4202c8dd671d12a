"""Runtimes, containers and monitors that are killed: files are as before a call or after it, and nothing runs on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Timer

import pytest

from tests.backends.test_container import state
from tests.containers import IMAGE, podman
from tests.sampling import share
from weakfs import Session
from weakfs.backends.container import ContainerFilesystem, Podman

__all__ = ["podman"]

TOP = Path(__file__).parents[2]

# Each call sets two files to one number, in a way that is slow enough to be interrupted.
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
        for moment in range(share(12)):
            words = [sys.executable, "-c", RUNTIME, IMAGE, str(tmp_path), *podman.options]
            with subprocess.Popen(words, cwd=TOP, stdout=subprocess.PIPE) as runtime:
                assert runtime.stdout is not None
                assert runtime.stdout.readline() == b"ready\n"
                time.sleep(moment * 0.007)
                runtime.kill()
            loaded = Session.load(tmp_path / "session.json")
            files = ContainerFilesystem(loaded, image=IMAGE, store=tmp_path / "store", runtime=podman)
            assert files.read("a").content == files.read("b").content
            assert files.container._supervisor.processes() == []
            files.container.close()
    finally:
        files.container.remove()


@pytest.fixture
def files(podman: Podman, tmp_path: Path) -> ContainerFilesystem:
    return ContainerFilesystem(Session(), image=IMAGE, store=tmp_path, runtime=podman)


def test_a_container_that_is_killed_is_put_back_and_started_again(files: ContainerFilesystem) -> None:
    try:
        files.exec("echo kept > kept")
        before = state(files)
        first = files.container._inspect().pid
        timer = Timer(0.3, os.kill, (first, signal.SIGKILL))
        timer.start()
        with pytest.raises(OSError, match="killed from outside"):
            files.exec("rm -r kept /usr/lib; sleep 60")
        timer.join()
        assert state(files) == before
        assert files.exec("cat kept").stdout == "kept\n"
        assert files.container._inspect().pid != first
    finally:
        files.container.remove()


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
