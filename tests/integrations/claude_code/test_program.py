"""The real program with the installed hooks, with a scripted API."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from tests.integrations.claude_code.claude import end_process
from weakfs import Session
from weakfs.cli import main
from weakfs.integrations.claude_code import install
from weakfs.tools import ToolCall

pytestmark = pytest.mark.usefixtures("never_hung")


@pytest.mark.slow
def test_a_deletion_by_a_command_is_undone_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sdk = pytest.importorskip("claude_agent_sdk")
    from examples.integrations.claude_agent import Calls, scripted

    project, run = tmp_path / "project", tmp_path / "run"
    project.mkdir()
    run.mkdir()
    (project / "a.txt").write_text("one\n")
    location = install(project, f"folder:{tmp_path}/history").location
    calls: Calls = [("Write", {"file_path": "b.txt", "content": "two\n"}), ("Bash", {"command": "rm a.txt b.txt"})]
    try:
        with scripted(calls, project) as url:
            assert start(sdk, url, tmp_path).wait() == 0
        assert not (project / "a.txt").exists()
        for left in (["a.txt", "b.txt"], ["a.txt"]):
            assert main(["undo", location, "--root", str(project)]) == 0
            assert sorted(path.name for path in project.glob("*.txt")) == left
        assert main(["timeline", location]) == 0
        assert [word for word in capsys.readouterr().out.split() if word in ("Write", "Bash")] == ["Write", "Bash"]
    finally:
        end_servers(project)


@pytest.mark.slow
def test_the_call_of_a_command_is_recorded_when_the_program_is_killed(tmp_path: Path) -> None:
    sdk = pytest.importorskip("claude_agent_sdk")
    from examples.integrations.claude_agent import Calls, scripted

    project, run = tmp_path / "project", tmp_path / "run"
    project.mkdir()
    run.mkdir()
    (project / "a.txt").write_text("one\n")
    location = install(project, f"folder:{tmp_path}/history").location
    pid = project / "pid"
    calls: Calls = [("Bash", {"command": f"rm a.txt; echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600"})]
    try:
        with scripted(calls, project) as url:
            process = start(sdk, url, tmp_path)
            while not pid.exists():
                assert process.poll() is None
                time.sleep(0.05)
            process.kill()
            process.wait()
        while not (recorded := recorded_calls(location)):
            time.sleep(0.1)
        (call,) = recorded
        assert (call.tool, call.status) == ("Bash", "ok")
        assert main(["undo", location, "--root", str(project)]) == 0
        assert (project / "a.txt").exists()
    finally:
        if pid.exists():
            with suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGKILL)
        end_servers(project)


def start(sdk: ModuleType, url: str, directory: Path) -> subprocess.Popen[bytes]:
    """Start the program in the project of a directory, with an API at a URL."""
    environment = {
        "ANTHROPIC_API_KEY": "none",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CONFIG_DIR": str(directory / "config"),
        "NO_PROXY": "127.0.0.1",
        "XDG_RUNTIME_DIR": str(directory / "run"),
    }
    program = str(Path(str(sdk.__file__)).parent / "_bundled" / "claude")
    command = [program, "-p", "Tidy up.", "--allowedTools", "Bash,Write"]
    return subprocess.Popen(command, cwd=directory / "project", env=os.environ | environment, stdin=subprocess.DEVNULL)


def recorded_calls(location: str) -> tuple[ToolCall, ...]:
    with Session.open(location) as session:
        return session[ToolCall].all()


def end_servers(project: Path) -> None:
    """End the servers of a project."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(project) in words and any(b"claude_code.server" in word for word in words):
            with suppress(ProcessLookupError):
                end_process(int(path.parent.name), signal.SIGTERM)
