"""An agent works on a session, breaks it, and gets it back: `python -m examples.integrations.openai_agents`.

The model is a script, so no network is needed. The second half runs in another process.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agents import Agent, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from weakfs import DEFAULT_TOOLS, InMemoryFilesystem, Session, Toolset
from weakfs.integrations.openai_agents import function_tools
from weakfs.tools import ToolCall
from weakfs.tools.handlers import ShellOptions, shell_tool

PATCH = """\
*** Begin Patch
*** Update File: src/app.py
@@
-port = 80
+port = 8000
*** End Patch
"""
# The second file does not have this line, so neither file is changed.
HALF_WRONG = """\
*** Begin Patch
*** Update File: src/app.py
@@
-port = 8000
+port = 8080
*** Update File: docs/ports.md
@@
-80: the server
+8080: the server
*** End Patch
"""
Calls = Sequence[tuple[str, dict[str, Any]]]
CALLS: Calls = [
    ("apply_patch", {"patch": PATCH}),
    ("write_file", {"path": "/docs/ports.md", "content": "8000: a port\n"}),
    ("apply_patch", {"patch": HALF_WRONG}),
    ("shell", {"command": "rm -r src docs"}),
]


def work(session: Session, calls: Calls) -> None:
    """Let the agent make the calls in one run, and print the first line of each answer."""
    shell = shell_tool(ShellOptions(sandbox="auto"))
    toolset = Toolset(session, tools=[*(tool for tool in DEFAULT_TOOLS if tool.name != "shell"), shell])
    steps: list[Any] = [
        [function_call(name, arguments, call_id=f"call-{number}")] for number, (name, arguments) in enumerate(calls)
    ]
    agent = Agent(
        name="agent", model=ScriptedModel([*steps, [assistant_message("done")]]), tools=function_tools(toolset)
    )
    result = asyncio.run(Runner.run(agent, "Move the server to port 8000."))
    for item in result.new_items:
        if item.type == "tool_call_output_item":
            print(str(item.output).splitlines()[0][:90])
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
        deletion = next(call for call in reversed(session[ToolCall].all()) if call.tool == "shell")
        session.revert(deletion.call_id)
        print(f"left: {shown(session)}", flush=True)
        # Undo the revert, the deletion, the new file and the patch.
        session.undo(4)
        print(f"left: {shown(session)}", flush=True)
        assert InMemoryFilesystem(session).read("/src/app.py").content == "port = 80\n"
        work(session, [("write_file", {"path": "/notes.md", "content": "all is well\n"})])
        print("calls:", " ".join(f"{call.tool}:{call.status}" for call in session[ToolCall].all()))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        sessions = Path(directory) / "sessions"
        first_half(sessions)
        subprocess.run([sys.executable, "-m", "examples.integrations.openai_agents", str(sessions)], check=True)


if __name__ == "__main__":
    set_tracing_disabled(True)
    if len(sys.argv) == 2:
        second_half(Path(sys.argv[1]))
    else:
        main()
