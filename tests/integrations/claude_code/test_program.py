"""The real program with the installed hooks, under an API that is a script."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from weakfs.cli import main
from weakfs.integrations.claude_code import install

pytestmark = pytest.mark.usefixtures("never_hung")


@pytest.mark.slow
def test_what_a_command_deleted_is_undone_by_the_command_line(
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
    program = str(Path(sdk.__file__).parent / "_bundled" / "claude")
    try:
        with scripted(calls, project) as url:
            environment = {
                "ANTHROPIC_API_KEY": "none",
                "ANTHROPIC_BASE_URL": url,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CONFIG_DIR": str(tmp_path / "config"),
                "NO_PROXY": "127.0.0.1",
                "XDG_RUNTIME_DIR": str(run),
            }
            command = [program, "-p", "Tidy up.", "--allowedTools", "Bash,Write"]
            subprocess.run(command, cwd=project, env=os.environ | environment, stdin=subprocess.DEVNULL, check=True)
        assert not (project / "a.txt").exists()
        for left in (["a.txt", "b.txt"], ["a.txt"]):
            assert main(["undo", location, "--root", str(project)]) == 0
            assert sorted(path.name for path in project.glob("*.txt")) == left
        assert main(["timeline", location]) == 0
        assert [word for word in capsys.readouterr().out.split() if word in ("Write", "Bash")] == ["Write", "Bash"]
    finally:
        end_servers(project)


def end_servers(project: Path) -> None:
    """End the servers of a project."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(project) in words and any(b"claude_code.server" in word for word in words):
            os.kill(int(path.parent.name), signal.SIGTERM)
