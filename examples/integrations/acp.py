"""An agent works in a directory, breaks it, and gets it back: `python -m examples.integrations.acp`.

The agent is a script in a separate process that speaks the Agent Client Protocol, so no network is needed. The second
half runs in another process.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

import acp
from acp.schema import InitializeResponse, NewSessionResponse, PromptResponse

from weakfs import HostFilesystem, Session, Toolset
from weakfs.integrations.acp import CAPABILITIES, SessionClient
from weakfs.tools import ToolCall

# What the agent runs for each prompt. The migration fails halfway, and the cleanup deletes too much.
WORK: dict[str, list[tuple[str, Any, str]]] = {
    "Serve on port 8000.": [
        ("port", "edit", "sed -i 's/80/8000/' src/app.py"),
        ("docs", "edit", "mkdir docs; echo '8000: the server' > docs/ports.md"),
        ("migration", "execute", "rm docs/ports.md; echo 'port = 1' > src/app.py; exit 1"),
        ("cleaning", "execute", "rm -r src docs"),
    ],
    "Say how it went.": [("notes", "edit", "echo 'all is well' > notes.md")],
}


class ScriptedAgent:
    """An agent that follows a script instead of a model."""

    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: object) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: object) -> NewSessionResponse:
        self.directory = cwd
        return NewSessionResponse(session_id="chat")

    async def prompt(self, prompt: list[Any], session_id: str, **_: object) -> PromptResponse:
        for name, kind, command in WORK[prompt[0].text]:
            start = acp.start_tool_call(name, command, kind=kind, status="in_progress")
            await self.client.session_update(session_id=session_id, update=start)
            # Once the client answers, it has seen the start of the tool.
            await self.client.read_text_file(session_id=session_id, path=f"{self.directory}/README.md")
            done = await asyncio.to_thread(subprocess.run, command, shell=True, check=False, cwd=self.directory)
            end = acp.update_tool_call(name, status="failed" if done.returncode else "completed")
            await self.client.session_update(session_id=session_id, update=end)
        return PromptResponse(stop_reason="end_turn")


async def work(session: Session, root: Path, store: Path, prompt: str) -> None:
    """Let the agent work in a directory; the changes of each tool are recorded as a call of the session."""
    files = HostFilesystem(root, session=session, store=store)
    client = SessionClient(Toolset(session, files), permission="allow", undo_failed=True)
    agent = (sys.executable, "-m", "examples.integrations.acp", "agent")
    async with acp.spawn_agent_process(client, *agent) as (connection, _):
        await connection.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=CAPABILITIES)
        conversation = await connection.new_session(cwd=str(root))
        await client.prompt(conversation.session_id, prompt)


def shown(root: Path) -> str:
    """Return the files of a directory in one line."""
    return " ".join(sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())) or "nothing"


def first_half(root: Path, sessions: Path, store: Path) -> None:
    """Let the agent break the directory."""
    with Session.open(sessions, "chat") as session:
        asyncio.run(work(session, root, store, "Serve on port 8000."))
    print("left:", shown(root))


def second_half(root: Path, sessions: Path, store: Path) -> None:
    """Undo everything, one call after another, and continue."""
    with Session.open(sessions, "chat") as session:
        HostFilesystem(root, session=session, store=store)
        session.undo()
        print("left:", shown(root))
        print((root / "src/app.py").read_text().strip())
        session.undo(2)
        print("left:", shown(root))
        print((root / "src/app.py").read_text().strip())
        asyncio.run(work(session, root, store, "Say how it went."))
        print("left:", shown(root))
        print("calls:", " ".join(f"{call.call_id}:{call.status}" for call in session[ToolCall].all()))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        root, sessions, store = (Path(directory, name) for name in ("project", "sessions", "store"))
        (root / "src").mkdir(parents=True)
        (root / "src/app.py").write_text("port = 80\n")
        (root / "README.md").write_text("A server.\n")
        first_half(root, sessions, store)
        again = [sys.executable, "-m", "examples.integrations.acp", "second", str(root), str(sessions), str(store)]
        subprocess.run(again, check=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["agent"]:
            asyncio.run(acp.run_agent(cast(acp.Agent, ScriptedAgent())))
        case ["second", *places]:
            second_half(*map(Path, places))
        case _:
            main()
