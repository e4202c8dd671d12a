"""The hooks as Claude Code runs them: processes that speak with the server of the project."""

from __future__ import annotations

import fcntl
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.claude_code.claude import Claude
from weakfs import HostFilesystem, Session
from weakfs.integrations.claude_code.hook import PATIENCE

pytestmark = pytest.mark.usefixtures("never_hung")


def test_changes_by_a_tool_are_one_call_that_can_be_reverted(claude: Claude) -> None:
    assert claude.fire("PreToolUse", tool_input={"command": "rm a.txt"}) == {}
    (claude.project / "a.txt").unlink()
    assert claude.fire("PostToolUse", tool_response={"stdout": "removed"}) == {}
    assert claude.fire("PreToolUse", "Read", "t2") == {}
    assert claude.fire("PreToolUse", "Write", "t3", tool_input={"file_path": "b.txt"}) == {}
    (claude.project / "b.txt").write_text("b\n")
    assert claude.fire("PostToolUse", "Write", "t3") == {}
    assert claude.calls() == [("t1", "Bash", "ok"), ("t3", "Write", "ok")]
    # Another process reverts a call while the server runs, and the server continues from there.
    with Session.open(claude.made.location, on_conflict="merge") as session:
        HostFilesystem(claude.project, session=session, store=claude.runtime / "other")
        session.revert("t1")
    assert (claude.project / "a.txt").read_text() == "one\n"
    assert claude.fire("PreToolUse", "Bash", "t4") == {}
    (claude.project / "c.txt").write_text("c\n")
    assert claude.fire("PostToolUse", "Bash", "t4") == {}
    assert [call[0] for call in claude.calls()] == ["t1", "t3", "t4"]
    assert len(claude.servers) == 1


def test_a_tool_whose_end_is_not_reported_ends_with_the_turn_of_its_agent(claude: Claude) -> None:
    claude.fire("PreToolUse", tool_id="t1")
    claude.fire("PreToolUse", tool_id="t2", session_id="s2")
    (claude.project / "b.txt").write_text("b\n")
    claude.fire("Stop", session_id="s1")
    assert claude.calls() == []
    claude.fire("PostToolUse", tool_id="t2", session_id="s2")
    assert claude.calls() == [("t1", "Bash", "ok")]


def test_a_subagent_in_the_background_outlasts_the_turn_of_the_main_agent(claude: Claude) -> None:
    claude.fire("PreToolUse", tool_id="t1", agent_id="sub")
    claude.fire("Stop", background_tasks=[{"id": "sub", "type": "subagent", "status": "running"}])
    claude.fire("UserPromptSubmit")
    (claude.project / "a.txt").unlink()
    assert claude.calls() == []
    claude.fire("PostToolUse", tool_id="t1", agent_id="sub")
    assert claude.calls() == [("t1", "Bash", "ok")]


@pytest.mark.parametrize("event", [("SubagentStop", {"agent_id": "sub"}), ("Stop", {"background_tasks": []})])
def test_a_tool_of_a_subagent_whose_end_is_not_reported_ends_with_the_subagent(
    claude: Claude, event: tuple[str, dict[str, Any]]
) -> None:
    claude.fire("PreToolUse", tool_id="t1", agent_id="sub")
    claude.fire("PreToolUse", tool_id="t2", agent_id="sub")
    claude.fire(event[0], **event[1])
    assert claude.calls() == [("t1", "Bash", "ok")]


def test_a_directory_that_replaces_the_project_is_recorded(claude: Claude) -> None:
    claude.fire("PreToolUse", tool_id="t1")
    claude.fire("PostToolUse", tool_id="t1")
    shutil.rmtree(claude.project)
    assert claude.fire("PreToolUse", tool_id="t2")["systemMessage"].startswith("weakfs did not record this tool: ")
    claude.project.mkdir()
    (claude.project / "b.txt").write_text("two\n")
    assert claude.fire("PreToolUse", tool_id="t3") == {}
    (claude.project / "b.txt").unlink()
    assert claude.fire("PostToolUse", tool_id="t3") == {}
    with Session.open(claude.made.location, on_conflict="merge") as session:
        HostFilesystem(claude.project, session=session, store=claude.runtime / "other")
        session.undo()
    assert [path.name for path in claude.project.iterdir()] == ["b.txt"]


def test_a_hook_waits_for_an_ending_server_and_starts_a_new_one(claude: Claude) -> None:
    claude.fire("Stop")
    claude.end()
    (lock,) = claude.place.glob("*.lock")
    with lock.open("a") as ending:
        fcntl.flock(ending, fcntl.LOCK_EX)
        process = claude.start("Stop")
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        # The server that the hook starts finds the lock and exits, perhaps before it is seen.
        until = time.monotonic() + PATIENCE / 3
        while not claude.servers and time.monotonic() < until:
            assert process.poll() is None
        while claude.servers:
            assert process.poll() is None
    assert process.communicate(timeout=300) == ("{}", "")
    assert len(claude.servers) == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_changes_by_a_tool_stay_if_the_server_dies_meanwhile(claude: Claude, number: int) -> None:
    claude.fire("PreToolUse", tool_id="t1")
    (claude.project / "a.txt").unlink()
    claude.end(number)
    (claude.project / "b.txt").write_text("b\n")
    claude.fire("PostToolUse", tool_id="t1")
    claude.fire("PreToolUse", tool_id="t2")
    (claude.project / "c.txt").write_text("c\n")
    claude.fire("PostToolUse", tool_id="t2")
    assert sorted(path.name for path in claude.project.iterdir()) == [".claude", "b.txt", "c.txt"]
    assert [call[0] for call in claude.calls()] == (["t2"] if number == signal.SIGKILL else ["t1", "t2"])


def test_hooks_that_start_concurrently_share_one_server(claude: Claude) -> None:
    processes = [claude.start("PreToolUse", tool_id=f"t{number}") for number in range(6)]
    assert [process.communicate(timeout=300) for process in processes] == [("{}", "")] * 6
    for number in range(6):
        claude.fire("PostToolUse", tool_id=f"t{number}")
    assert len(claude.servers) == 1
    assert len(claude.calls()) == 1


def test_a_server_that_cannot_start_does_not_stop_the_tool(claude: Claude, tmp_path: Path) -> None:
    (tmp_path / "history").write_text("not a folder")
    process = claude.start("PreToolUse")
    out, err = process.communicate(timeout=300)
    # Status 1 is shown to the user; 2 would stop the tool.
    assert (process.returncode, out) == (1, "")
    assert err.startswith("weakfs did not record this tool: its server did not start; see ")
    assert "history" in Path(err.split()[-1]).read_text()


UNREADABLE = [
    (b"", "Expecting value"),
    (b"{", "Expecting property name"),
    (b"[]", "it is a list"),
    (b"null", "it is None"),
    (b"{}", "it has no 'hook_event_name'"),
    (b'{"hook_event_name": "PreToolUse", "tool_use_id": "t1"}', "it has no 'tool_name'"),
    (b'{"hook_event_name": "PreToolUse", "tool_name": "Bash"}', "it has no 'tool_use_id'"),
    (b"\xff" * 9, "codec can't decode"),
    (b"[" * 99999, "recursion"),
    (b" " * ((64 << 20) + 1), "it is larger than 67108864 bytes"),
]


@pytest.mark.parametrize(("event", "problem"), UNREADABLE, ids=[problem for _, problem in UNREADABLE])
def test_an_event_that_cannot_be_read_is_reported_and_does_no_harm(claude: Claude, event: bytes, problem: str) -> None:
    claude.fire("Stop")
    done = subprocess.run(
        claude.commands["PreToolUse"], shell=True, input=event, capture_output=True, env=claude.environment, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    message = json.loads(done.stdout)["systemMessage"]
    assert message.startswith("weakfs cannot read the event of this hook: ")
    assert problem in message
    assert claude.fire("Stop") == {}


def test_a_directory_of_somebody_else_is_not_used(claude: Claude, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    for is_link in (True, False):
        if is_link:
            claude.place.symlink_to(tmp_path / "elsewhere")
        else:
            claude.place.mkdir(mode=0o755)
        process = claude.start("PreToolUse")
        _, err = process.communicate(timeout=300)
        assert process.returncode == 1
        assert "is not a directory that only you can access" in err
        (claude.place.unlink if is_link else claude.place.rmdir)()
    assert claude.servers == []


def test_nobody_else_can_reach_the_server(claude: Claude) -> None:
    claude.fire("Stop")
    assert claude.place.stat().st_mode & 0o777 == 0o700
    (path,) = claude.place.glob("*.sock")
    with socket.socket(socket.AF_UNIX) as silent:
        # A client that connects and sends nothing keeps nobody waiting.
        silent.connect(str(path))
        assert claude.fire("Stop") == {}


def test_the_hook_imports_nothing_of_the_library() -> None:
    from weakfs.integrations.claude_code import hook

    program = f"import sys, runpy; runpy.run_path({hook.__file__!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    assert not {"hashlib", "json", "socket", "subprocess", "weakfs"} & set(done.stdout.split())
