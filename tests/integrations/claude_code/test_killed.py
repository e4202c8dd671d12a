"""Tools that can no longer end, because the process that ran them was killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integrations.claude_code.claude import Claude
from weakfs import HostFilesystem, Session

pytestmark = pytest.mark.usefixtures("never_hung")

# What Claude Code does in its own process: it runs the hook of a tool and then the tool.
PROGRAM = """
import os, subprocess, time
hook = subprocess.run(os.environ["HOOK"], shell=True, input=os.environ["EVENT"], text=True, capture_output=True)
print(hook.returncode, hook.stdout, flush=True)
time.sleep(600)
"""


@contextmanager
def running(claude: Claude, tool_id: str, session_id: str) -> Iterator[subprocess.Popen[str]]:
    """Begin a tool in a process of its own, which runs until it is killed."""
    event = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": tool_id, "session_id": session_id}
    environment = {**claude.environment, "HOOK": claude.commands["PreToolUse"], "EVENT": json.dumps(event)}
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=-1, text=True, env=environment)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "0 {}\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    # The process has not been waited for yet: it counts as gone as soon as it has ended, even if it still has an entry
    # in /proc.
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def test_later_tools_do_not_join_the_call_of_a_process_that_was_killed(claude: Claude) -> None:
    with running(claude, "t1", "s1") as killed:
        (claude.project / "a.txt").unlink()
        kill(killed)
        claude.fire("PreToolUse", tool_id="t2", session_id="s2")
        (claude.project / "b.txt").write_text("b\n")
        claude.fire("PostToolUse", tool_id="t2", session_id="s2")
    assert claude.calls() == [("t1", "Bash", "ok"), ("t2", "Bash", "ok")]
    with Session.open(claude.made.location, on_conflict="merge") as session:
        HostFilesystem(claude.project, session=session, store=claude.runtime / "other")
        session.revert("t1")
    assert sorted(path.name for path in claude.project.glob("*.txt")) == ["a.txt", "b.txt"]


def test_the_call_of_a_killed_process_is_recorded_even_if_no_other_event_follows(claude: Claude) -> None:
    with running(claude, "t1", "s1") as killed:
        (claude.project / "a.txt").unlink()
        kill(killed)
        while not claude.calls():
            time.sleep(0.1)
    claude.end(signal.SIGKILL)
    claude.fire("Stop", session_id="s2")
    assert claude.calls() == [("t1", "Bash", "ok")]
    assert not (claude.project / "a.txt").exists()


def test_the_call_of_a_killed_process_ends_with_a_tool_that_joined_it(claude: Claude) -> None:
    with running(claude, "t1", "s1") as killed, running(claude, "t2", "s2"):
        kill(killed)
        claude.fire("PreToolUse", tool_id="t3", session_id="s3")
        claude.fire("PostToolUse", tool_id="t3", session_id="s3")
        assert claude.calls() == []
        claude.fire("PostToolUse", tool_id="t2", session_id="s2")
        assert claude.calls() == [("t1", "Bash", "ok")]


def test_a_call_stays_open_while_the_process_of_its_tool_lives(claude: Claude) -> None:
    with running(claude, "t1", "s1"):
        # Two seconds, in which the server checks the process at least once.
        time.sleep(2)
        claude.fire("PreToolUse", tool_id="t2", session_id="s2")
        claude.fire("PostToolUse", tool_id="t2", session_id="s2")
        assert claude.calls() == []
        claude.fire("PostToolUse", tool_id="t1", session_id="s1")
        assert claude.calls() == [("t1", "Bash", "ok")]
