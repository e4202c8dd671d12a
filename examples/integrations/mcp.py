"""An agent works on a directory over MCP, breaks it, and gets it back: `python -m examples.integrations.mcp`.

The model is a script, so no network is needed. The second half runs in another process, `weakfs mcp`.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from weakfs import DEFAULT_TOOLS, HostFilesystem, Session, Toolset
from weakfs.integrations.mcp import SESSION_TOOLS, toolset_server
from weakfs.tools.handlers import ShellOptions, shell_tool

# Two edits. The text of the second one does not exist, so neither is made.
HALF_WRONG = [
    {"old_string": "port = 80", "new_string": "port = 8080"},
    {"old_string": "host = 'localhost'", "new_string": "host = '0.0.0.0'"},
]
CALLS: list[tuple[str, Mapping[str, object]]] = [
    ("snapshot", {"tag": "start"}),
    ("edit_file", {"path": "/src/app.py", "old_string": "port = 80", "new_string": "port = 8000"}),
    ("write_file", {"path": "/docs/ports.md", "content": "8000: the server\n"}),
    ("edit_file", {"path": "/src/app.py", "edits": HALF_WRONG}),
    ("shell", {"command": "rm -r src docs"}),
]


async def call(client: Client, name: str, arguments: Mapping[str, object]) -> None:
    """Make a call and print the first line of its answer."""
    result = await client.session.call_tool(name, dict(arguments))
    first = result.content[0]
    assert isinstance(first, types.TextContent)
    print(f"{name}: {'failed: ' if result.is_error else ''}{first.text.splitlines()[0][:70]}")


def shown(root: Path) -> str:
    """Return the files of a directory in one line."""
    return " ".join(sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())) or "nothing"


async def first_half(root: Path, sessions: Path, store: Path) -> None:
    """Let the agent work in this process."""
    shell = shell_tool(ShellOptions(sandbox="auto"))
    tools = [*(tool for tool in DEFAULT_TOOLS if tool.name != "shell"), shell, *SESSION_TOOLS]
    with Session.open(sessions, "chat") as session:
        files = HostFilesystem(root, session=session, store=store)
        server = toolset_server(Toolset(session, files, tools=tools, provider="mcp"))
        async with Client(server) as client:
            for name, arguments in CALLS:
                await call(client, name, arguments)
    print(f"left: {shown(root)}")


async def second_half(root: Path, sessions: Path, store: Path) -> None:
    """Undo everything in another process, and continue."""
    arguments = ["-m", "weakfs", "mcp", str(root), "--session", str(sessions), "--store", str(store)]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, cwd=str(Path.cwd()))
    async with Client(stdio_client(parameters, errlog=sys.__stderr__ or sys.stderr)) as client:
        await call(client, "undo", {})
        print(f"left: {shown(root)}")
        await call(client, "restore", {"moment": "start"})
        print(f"left: {shown(root)}")
        await call(client, "write_file", {"path": "/notes.md", "content": "all is well\n"})
        rows = (await client.call_tool("timeline", {"limit": 100})).structured_content["rows"]
        print("calls:", " ".join(row["action"] for row in rows if row["kind"] == "call"))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        root, sessions, store = place / "project", place / "sessions", place / "store"
        (root / "src").mkdir(parents=True)
        (root / "src/app.py").write_text("port = 80\n")
        asyncio.run(first_half(root, sessions, store))
        asyncio.run(second_half(root, sessions, store))
        assert (root / "src/app.py").read_text() == "port = 80\n"


if __name__ == "__main__":
    main()
