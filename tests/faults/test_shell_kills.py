"""A runtime that is killed while a command runs: nothing of the command is left running."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.sampling import share
from weakfs.backends import HostFilesystem, HostMount, InMemoryFilesystem
from weakfs.processes import Bubblewrap, SandboxMode

TOP = Path(__file__).parents[2]
MODES: list[SandboxMode] = ["off", "required"]

RUNTIME = """
import sys
from weakfs.processes import Bubblewrap, run_command

directory, mode, cookie = sys.argv[1:]
bubblewrap = Bubblewrap()
bubblewrap.problem()
print("ready", flush=True)
daemon = "(setsid sh -c 'trap : TERM HUP; while :; do sleep 1000; done' > /dev/null 2>&1 &) &"
run_command(
    f"{daemon} sleep 1000 & touch begun; trap '' TERM; while :; do sleep 1000; done",
    directory,
    sandbox=mode,
    bubblewrap=bubblewrap,
    environment={"COOKIE": cookie},
    # Of a runtime that is gone nobody waits for a last word.
    grace=1000,
)
"""

# Its workspace is `root` in the directory; the command reports in a file next to it that the damage is done.
EMBEDDING = """
import sys
from weakfs import HostFilesystem, Session, Toolset
from weakfs.tools.handlers import ShellOptions, shell_tool

directory, cookie = sys.argv[1:]
session = Session()
files = HostFilesystem(f"{directory}/root", session=session, store=f"{directory}/store")
options = ShellOptions(sandbox="off", environment={"COOKIE": cookie})
command = f"trap '' TERM; rm -r src; echo new > new; touch {directory}/begun; while :; do echo more >> new; done"
print("ready", flush=True)
Toolset(session, files, tools=[shell_tool(options)]).call("shell", {"command": command})
"""

pytestmark = [
    pytest.mark.usefixtures("never_hung"),
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc"),
]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> SandboxMode:
    chosen: SandboxMode = request.param
    problem = Bubblewrap().problem()
    if chosen == "required" and problem:
        pytest.skip(f"no sandbox: {problem}")
    return chosen


@contextmanager
def running(directory: Path, mode: SandboxMode, cookie: str) -> Generator[subprocess.Popen[str]]:
    arguments = [sys.executable, "-c", RUNTIME, str(directory), mode, cookie]
    with subprocess.Popen(arguments, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as runtime:
        try:
            assert runtime.stdout is not None
            assert runtime.stdout.readline() == "ready\n"
            yield runtime
        finally:
            runtime.kill()


def living(cookie: str) -> dict[int, str]:
    """Return the ids of the processes that have the cookie in their environment."""
    found: dict[int, str] = {}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if cookie.encode() in (place / "environ").read_bytes():
                found[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
    return found


def wait_for(directory: Path) -> None:
    while not (directory / "begun").exists():
        time.sleep(0.01)


@pytest.mark.sampled
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_command_does_not_outlive_its_runtime(tmp_path: Path, mode: SandboxMode, number: int) -> None:
    cookie = secrets.token_hex(16)
    with running(tmp_path, mode, cookie) as runtime:
        wait_for(tmp_path)
        # The command's shell, and what it started. A process that becomes another program briefly has no environment.
        while len(living(cookie)) < 3:
            time.sleep(0.01)

        runtime.send_signal(number)

        assert runtime.wait() == -number
    while living(cookie):
        time.sleep(0.01)


@pytest.mark.sampled(by_rule=True)
def test_a_runtime_that_is_killed_at_any_moment_leaves_nothing_running(tmp_path: Path, mode: SandboxMode) -> None:
    cookie = secrets.token_hex(16)
    for moment in range(share(25)):
        with running(tmp_path, mode, cookie) as runtime:
            time.sleep(moment * 0.002)
            runtime.kill()

    while living(cookie):
        time.sleep(0.01)


def test_a_supervisor_that_is_killed_takes_the_command_with_it(tmp_path: Path) -> None:
    cookie = secrets.token_hex(16)
    with running(tmp_path, "off", cookie) as runtime:
        wait_for(tmp_path)
        (supervisor,) = Path(f"/proc/{runtime.pid}/task/{runtime.pid}/children").read_text().split()

        os.kill(int(supervisor), signal.SIGKILL)

        _, said = runtime.communicate()
    assert "OSError: the command was killed from outside" in said
    # A daemon with a session of its own cannot be reached, so it is ended here. All others die a moment later.
    left = living(cookie)
    while not all(name.startswith(("sh -c trap", "sleep")) for name in left.values()):
        time.sleep(0.01)
        left = living(cookie)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_changes_by_a_command_are_undone_by_the_next_runtime(tmp_path: Path) -> None:
    cookie = secrets.token_hex(16)
    (tmp_path / "root" / "src").mkdir(parents=True)
    (tmp_path / "root" / "src" / "app.py").write_text("port = 80\n")
    before = InMemoryFilesystem(mounts=[HostMount(str(tmp_path / "root"))]).tree().fingerprint
    arguments = [sys.executable, "-c", EMBEDDING, str(tmp_path), cookie]
    with subprocess.Popen(arguments, cwd=TOP) as runtime:
        wait_for(tmp_path)
        assert not (tmp_path / "root" / "src").exists()
        runtime.kill()
    while living(cookie):
        time.sleep(0.01)

    files = HostFilesystem(tmp_path / "root", store=tmp_path / "store")

    assert files.tree().fingerprint == before
    assert (tmp_path / "root" / "src" / "app.py").read_text() == "port = 80\n"
    assert not (tmp_path / "root" / "new").exists()
