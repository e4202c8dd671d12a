"""An agent works on a session, breaks it, and gets it back: `python -m examples.integrations.pydantic_ai`.

The model is a script, so no network is needed. The second half runs in another process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from weakfs import DEFAULT_TOOLS, InMemoryFilesystem, Session, Toolset
from weakfs.integrations.pydantic_ai import SessionToolset
from weakfs.tools import ToolCall
from weakfs.tools.handlers import ShellOptions, shell_tool

# Two edits. The text of the second one does not exist, so neither is made.
HALF_WRONG = [
    {"old_string": "port = 8000", "new_string": "port = 8080"},
    {"old_string": "host = 'localhost'", "new_string": "host = '0.0.0.0'"},
]
Calls = Sequence[tuple[str, dict[str, Any]]]
CALLS: Calls = [
    ("edit_file", {"path": "/src/app.py", "old_string": "port = 80", "new_string": "port = 8000"}),
    ("write_file", {"path": "/docs/ports.md", "content": "8000: the server\n"}),
    ("edit_file", {"path": "/src/app.py", "edits": HALF_WRONG}),
    ("shell", {"command": "rm -r src docs"}),
]


def scripted(calls: Calls) -> FunctionModel:
    """Return a model that makes one call after another."""

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        made = sum(isinstance(message, ModelResponse) for message in messages)
        return ModelResponse(parts=[ToolCallPart(*calls[made]) if made < len(calls) else TextPart("done")])

    return FunctionModel(reply)


def work(session: Session, calls: Calls) -> None:
    """Let the agent make the calls in one run, and print the first line of each answer."""
    shell = shell_tool(ShellOptions(sandbox="auto"))
    tools = [*(tool for tool in DEFAULT_TOOLS if tool.name != "shell"), shell]
    toolset: SessionToolset[object] = SessionToolset(Toolset(session, tools=tools))
    result = Agent(scripted(calls), toolsets=[toolset], deps_type=object).run_sync("Move the server to port 8000.")
    for message in result.all_messages():
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                failed = "failed: " if part.outcome == "failed" else ""
                print(f"{part.tool_name}: {failed}{str(part.content).splitlines()[0][:70]}")
    print(f"left: {shown(session)}", flush=True)


def shown(session: Session) -> str:
    """Return the files of a session in one line."""
    return " ".join(one.path for one in InMemoryFilesystem(session).walk("/") if one.is_file) or "nothing"


def first_half(sessions: Path) -> None:
    with Session.open(sessions, "chat") as session:
        InMemoryFilesystem(session).write("/src/app.py", "port = 80\n")
        work(session, CALLS)


def second_half(sessions: Path) -> None:
    with Session.open(sessions, "chat") as session:
        # A run is one operation, but its calls can also be reverted one by one.
        deletion = next(call for call in reversed(session[ToolCall].all()) if call.tool == "shell")
        session.revert(deletion.call_id)
        print(f"left: {shown(session)}", flush=True)
        session.undo(2)
        print(f"left: {shown(session)}", flush=True)
        work(session, [("write_file", {"path": "/notes.md", "content": "all is well\n"})])
        print("calls:", " ".join(call.tool for call in session[ToolCall].all()))
        assert InMemoryFilesystem(session).read("/src/app.py").content == "port = 80\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        sessions = Path(directory) / "sessions"
        first_half(sessions)
        subprocess.run([sys.executable, "-m", "examples.integrations.pydantic_ai", str(sessions)], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        second_half(Path(sys.argv[1]))
    else:
        main()
