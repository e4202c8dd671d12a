"""A model works with the tool runner, breaks things, and gets them back: `python -m examples.integrations.anthropic`.

The API is a script, so no network is needed. The second half runs in another process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx2
from anthropic import Anthropic, DefaultHttpxClient

from weakfs import DEFAULT_TOOLS, InMemoryFilesystem, Session, Toolset
from weakfs.integrations.anthropic import MemoryTool, runnable_tools
from weakfs.tools import ToolCall
from weakfs.tools.handlers import ShellOptions, shell_tool

# Two edits. The text of the second one does not exist, so neither is made.
HALF_WRONG = [
    {"old_string": "port = 8000", "new_string": "port = 8080"},
    {"old_string": "host = 'localhost'", "new_string": "host = '0.0.0.0'"},
]
Calls = Sequence[tuple[str, dict[str, object]]]
CALLS: Calls = [
    ("edit_file", {"file_path": "/src/app.py", "old_string": "port = 80", "new_string": "port = 8000"}),
    ("memory", {"command": "create", "path": "/memories/ports.md", "file_text": "8000: the server\n"}),
    ("edit_file", {"file_path": "/src/app.py", "edits": HALF_WRONG}),
    ("shell", {"command": "rm -r src memories"}),
]


def scripted(calls: Calls) -> httpx2.MockTransport:
    """Return an API whose model makes one call after another."""
    replies = replies_of(calls)
    return httpx2.MockTransport(lambda request: httpx2.Response(200, json=next(replies)))


def replies_of(calls: Calls) -> Iterator[dict[str, object]]:
    """Yield the messages of the model."""
    message: dict[str, object] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted"}
    message.update(stop_sequence=None, usage={"input_tokens": 1, "output_tokens": 1})
    for number, (name, given) in enumerate(calls):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": given}
        yield {**message, "content": [block], "stop_reason": "tool_use"}
    yield {**message, "content": [{"type": "text", "text": "done"}], "stop_reason": "end_turn"}


def work(session: Session, calls: Calls) -> None:
    """Let the model make the calls, and print their results."""
    shell = shell_tool(ShellOptions(sandbox="auto"))
    tools = [*(tool for tool in DEFAULT_TOOLS if tool.name != "shell"), shell]
    before = len(session[ToolCall].all())
    with DefaultHttpxClient(transport=scripted(calls)) as http:
        Anthropic(api_key="none", http_client=http).beta.messages.tool_runner(
            model="scripted",
            max_tokens=1000,
            messages=[{"role": "user", "content": "Move the server to port 8000."}],
            tools=[MemoryTool(session), *runnable_tools(Toolset(session, tools=tools, provider="anthropic"))],
        ).until_done()
    for call in session[ToolCall].all()[before:]:
        print(f"{call.tool}: {'' if call.status == 'ok' else 'failed: '}{call.summary[:70]}")
    show(session)


def show(session: Session) -> None:
    """Print the files of a session in one line."""
    found = [entry.path for entry in InMemoryFilesystem(session).walk("/") if entry.is_file]
    print("left:", " ".join(found) or "nothing", flush=True)


def first_half(sessions: Path) -> None:
    with Session.open(sessions, "chat") as session:
        InMemoryFilesystem(session).write("/src/app.py", "port = 80\n")
        work(session, CALLS)


def second_half(sessions: Path) -> None:
    with Session.open(sessions, "chat") as session:
        session.undo()
        show(session)
        session.undo(2)
        show(session)
        work(session, [("memory", {"command": "create", "path": "/memories/a.md", "file_text": "all is well\n"})])
        print("calls:", json.dumps([call.tool for call in session[ToolCall].all()]))
        assert InMemoryFilesystem(session).read("/src/app.py").content == "port = 80\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        sessions = Path(directory) / "sessions"
        first_half(sessions)
        subprocess.run([sys.executable, "-m", "examples.integrations.anthropic", str(sessions)], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        second_half(Path(sys.argv[1]))
    else:
        main()
