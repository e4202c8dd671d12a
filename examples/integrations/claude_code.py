"""Claude Code with hooks works, breaks its project, and gets it back: `python -m examples.integrations.claude_code`.

The program is the real one, which is part of the Claude Agent SDK; its API is a script, so no network is needed. Each
command after the first runs in another process.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import claude_agent_sdk

from examples.integrations.claude_agent import Calls, scripted

FIRST: Calls = [
    ("Write", {"file_path": "docs/ports.md", "content": "8000: the server\n"}),
    ("Bash", {"command": "sed -i s/80/8000/ src/app.py"}),
    ("Bash", {"command": "echo broken > src/app.py; cat src/settings.py"}),
    ("Bash", {"command": "rm -r src docs"}),
]
SECOND: Calls = [("Write", {"file_path": "notes.md", "content": "all is well\n"})]


def weakfs(*arguments: str) -> str:
    """Run a `weakfs` command."""
    command = [sys.executable, "-m", "weakfs", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def claude(project: Path, place: Path, calls: Calls) -> None:
    """Let Claude Code make the calls in a project."""
    program = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    with scripted(calls, project) as url:
        environment = {
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CONFIG_DIR": str(place / "config"),
            "NO_PROXY": "127.0.0.1",
            "XDG_RUNTIME_DIR": str(place),
        }
        subprocess.run(
            [str(program), "-p", "Move the server to port 8000.", "--allowedTools", "Bash,Write,Edit"],
            cwd=project,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    print(f"left: {shown(project)}", flush=True)


def shown(project: Path) -> str:
    """Return the files of a project in one line, without the settings."""
    paths = (str(path.relative_to(project)) for path in project.rglob("*") if path.is_file())
    return " ".join(sorted(path for path in paths if not path.startswith(".claude"))) or "nothing"


def end_server(place: Path) -> None:
    """End the server of the hooks, which would otherwise end after half an hour, and wait until it has ended."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(b"claude_code.server" in word for word in words) and any(os.fsencode(place) in word for word in words):
            process = os.pidfd_open(int(path.parent.name))
            signal.pidfd_send_signal(process, signal.SIGTERM)
            select.select([process], [], [], 10)
            os.close(process)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        project, location = place / "project", f"folder:{place}/history"
        (project / "src").mkdir(parents=True)
        (project / "src/app.py").write_text("port = 80\n")
        try:
            weakfs("hooks", "install", "claude-code", str(project), "--session", location)
            claude(project, place, FIRST)
            for _ in FIRST:
                weakfs("undo", location, "--root", str(project))
                print(f"left: {shown(project)}", flush=True)
            assert (project / "src/app.py").read_text() == "port = 80\n"
            claude(project, place, SECOND)
            rows = [line.split() for line in weakfs("timeline", location).splitlines()]
            print("calls:", " ".join(word for row in rows for word in row if word in ("Write", "Bash")), flush=True)
            weakfs("hooks", "uninstall", "claude-code", str(project))
        finally:
            end_server(place)


if __name__ == "__main__":
    main()
