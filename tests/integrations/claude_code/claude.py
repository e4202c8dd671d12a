"""A project in which hooks are installed, and the hooks that Claude Code would run there."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from weakfs import Session
from weakfs.integrations.claude_code import Installed, install
from weakfs.tools import ToolCall


class Claude:
    """A project in which hooks are installed, and what runs them."""

    def __init__(self, project: Path, runtime: Path, state: Path) -> None:
        self.project = project
        self.runtime = runtime
        self.made: Installed = install(project, f"folder:{state}")
        settings = json.loads(self.made.settings.read_text())
        self.commands = {event: entry["hooks"][0]["command"] for event, (entry,) in settings["hooks"].items()}

    @classmethod
    def in_directory(cls, directory: Path) -> Claude:
        """Create a project with one file, and install the hooks."""
        project, runtime = directory / "project", directory / "run"
        project.mkdir()
        runtime.mkdir()
        (project / "a.txt").write_text("one\n")
        return cls(project, runtime, directory / "history")

    def start(self, event: str, tool: str = "Bash", tool_id: str = "t1", **fields: Any) -> subprocess.Popen[str]:
        payload = {"hook_event_name": event, "tool_name": tool, "tool_use_id": tool_id, "session_id": "s1", **fields}
        process = subprocess.Popen(
            self.commands[event], shell=True, stdin=-1, stdout=-1, stderr=-1, text=True, env=self.environment
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(payload))
            process.stdin.flush()
        return process

    def fire(self, event: str, tool: str = "Bash", tool_id: str = "t1", **fields: Any) -> Any:
        process = self.start(event, tool, tool_id, **fields)
        out, err = process.communicate(timeout=300)
        assert (process.returncode, err) == (0, "")
        return json.loads(out)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "XDG_RUNTIME_DIR": str(self.runtime), "XDG_STATE_HOME": str(self.runtime / "state")}

    @property
    def place(self) -> Path:
        return self.runtime / f"weakfs-{os.getuid()}"

    @property
    def servers(self) -> list[int]:
        """The processes of the server."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                words = path.read_bytes().split(b"\0")
                if os.fsencode(self.project) in words and any(b"claude_code.server" in word for word in words):
                    found.append(int(path.parent.name))
        return found

    def end(self, number: int = signal.SIGTERM) -> None:
        while self.servers:
            for pid in self.servers:
                with suppress(ProcessLookupError):
                    end_process(pid, number)

    def calls(self) -> list[tuple[str, str, str]]:
        with Session.open(self.made.location) as session:
            return [(call.call_id, call.tool, call.status) for call in session[ToolCall].all()]


def end_process(pid: int, number: int) -> None:
    """Send a signal to a process, and wait for its end.

    A dying process has no command line any more, although its socket and its lock may still be open.
    """
    process = os.pidfd_open(pid)
    try:
        os.kill(pid, number)
        select.select([process], [], [])
    finally:
        os.close(process)
