"""Claude Code works in a directory, breaks it, and gets it back: `python -m examples.integrations.claude_agent`.

The program is the real one, which is part of the SDK; its API is a script, so no network is needed. The second half
runs in another process.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ToolResultBlock, UserMessage, query

from weakfs import HostFilesystem, Session, Toolset
from weakfs.integrations.claude_agent import hooks
from weakfs.tools import ToolCall

Calls = Sequence[tuple[str, dict[str, object]]]
FIRST: Calls = [
    ("Read", {"file_path": "src/app.py"}),
    ("Edit", {"file_path": "src/app.py", "old_string": "port = 80", "new_string": "port = 8000"}),
    ("Write", {"file_path": "docs/ports.md", "content": "8000: the server\n"}),
    ("Bash", {"command": "echo broken > src/app.py; cat src/settings.py"}),
    ("Bash", {"command": "rm -r src docs"}),
]
SECOND: Calls = [("Write", {"file_path": "notes.md", "content": "all is well\n"})]


@contextmanager
def scripted(calls: Calls, root: Path) -> Iterator[str]:
    """Serve an API whose model makes one call after another in `root`, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = sum(message["role"] == "assistant" for message in request["messages"])
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for event in events_of(calls, said, root):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def events_of(calls: Calls, said: int, root: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of one streamed message: the next call, or the end."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{said}", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    if said < len(calls):
        name, given = calls[said]
        if "file_path" in given:
            given = {**given, "file_path": str(root / str(given["file_path"]))}
        block: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{len(calls)}_{said}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": "tool_use" if said < len(calls) else "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}


async def work(place: Path, session: Session, calls: Calls) -> None:
    """Let Claude Code make the calls, and print their results."""
    root = place / "project"
    toolset = Toolset(session, HostFilesystem(root, session=session, store=place / "store"))
    before = len(session[ToolCall].all())
    with scripted(calls, root) as url:
        options = ClaudeAgentOptions(
            cwd=root,
            hooks=hooks(toolset, undo_failed=True),
            allowed_tools=["Bash", "Edit", "Read", "Write"],
            setting_sources=[],
            env={
                "ANTHROPIC_API_KEY": "none",
                "ANTHROPIC_BASE_URL": url,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CONFIG_DIR": str(place / "config"),
                "NO_PROXY": "127.0.0.1",
            },
        )
        async for message in query(prompt="Move the server to port 8000.", options=options):
            for block in message.content if isinstance(message, UserMessage) else ():
                if isinstance(block, ToolResultBlock) and block.is_error:
                    print("failed:", str(block.content).splitlines()[-1])
    for call in session[ToolCall].all()[before:]:
        print(f"{call.tool}: {call.status}")
    show(root)


def show(root: Path) -> None:
    """Print the files of a directory in one line."""
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    print("left:", " ".join(found) or "nothing", flush=True)


async def first_half(place: Path) -> None:
    source = place / "project/src/app.py"
    source.parent.mkdir(parents=True)
    source.write_text("port = 80\n")
    with Session.open(place / "sessions", "chat") as session:
        await work(place, session, FIRST)


async def second_half(place: Path) -> None:
    root = place / "project"
    with Session.open(place / "sessions", "chat") as session:
        files = HostFilesystem(root, session=session, store=place / "store")
        session.undo()
        show(root)
        assert files.read("/src/app.py").content == "port = 8000\n"
        session.undo(2)
        show(root)
        await work(place, session, SECOND)
        print("calls:", " ".join(call.tool for call in session[ToolCall].all()))
    assert (root / "src/app.py").read_text() == "port = 80\n"


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(first_half(Path(directory)))
        subprocess.run([sys.executable, "-m", "examples.integrations.claude_agent", directory], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        asyncio.run(second_half(Path(sys.argv[1])))
    else:
        main()
