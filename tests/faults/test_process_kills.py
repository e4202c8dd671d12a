"""A runtime that is killed while background processes run: none of them is left running."""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.faults.test_shell_kills import TOP, living
from tests.sampling import is_exhaustive
from weakfs import HostFilesystem, Session
from weakfs.processes import Bubblewrap, SandboxMode
from weakfs.reducers.process_events import ProcessStarted

RUNTIME = """
import sys, time
from weakfs import HostFilesystem, Session, Toolset
from weakfs.processes.background import ProcessLimits
from weakfs.tools.handlers import ProcessOptions, process_tools

directory, mode, cookie = sys.argv[1:]
session = Session.open(f"{directory}/sessions", "s")
files = HostFilesystem(f"{directory}/root", session=session, store=f"{directory}/store")
options = ProcessOptions(sandbox=mode, environment={"COOKIE": cookie}, process_limits=ProcessLimits(max_running=None))
tools = Toolset(session, files, tools=process_tools(options))
command = (
    "(setsid sh -c 'trap : TERM HUP; while :; do sleep 1000; done' > /dev/null 2>&1 &) ; trap '' TERM; "
    "touch begun; while :; do sleep 1000; done"
)
print("ready", flush=True)
for _ in range(5):
    answer = tools.call("process_start", {"command": command})
    assert answer.success, answer.message
print("started", flush=True)
time.sleep(1000)
"""

pytestmark = [
    pytest.mark.usefixtures("never_hung"),
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are found through /proc"),
]


@pytest.mark.sampled(by_rule=True)
@pytest.mark.parametrize("mode", ["off", "required"])
def test_a_runtime_that_is_killed_at_any_moment_leaves_no_process(tmp_path: Path, mode: SandboxMode) -> None:
    if mode == "required" and Bubblewrap().problem():
        pytest.skip("no sandbox")
    (tmp_path / "root").mkdir()
    cookie = secrets.token_hex(16)
    moments = 12 if is_exhaustive() else 1
    for moment in range(moments):
        arguments = [sys.executable, "-c", RUNTIME, str(tmp_path), mode, cookie]
        with subprocess.Popen(arguments, cwd=TOP, stdout=subprocess.PIPE, text=True) as runtime:
            assert runtime.stdout is not None
            assert runtime.stdout.readline() == "ready\n"
            if moment == moments - 1:
                assert runtime.stdout.readline() == "started\n"
                while not (tmp_path / "root" / "begun").exists():
                    time.sleep(0.01)
            else:
                time.sleep(moment * 0.02)
            runtime.kill()

    while living(cookie):
        time.sleep(0.01)
    with Session.open(tmp_path / "sessions", "s") as session:
        files = HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store")
        assert len(session[ProcessStarted].all()) >= 5
        assert {info.state for info in files.background.infos()} == {"lost"}
