"""A deep agent works on a directory, breaks it, and gets it back: `python -m examples.integrations.deepagents`.

The model is a script, so no network is needed. The second half runs in another process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

from weakfs import HostFilesystem, Session
from weakfs.integrations.deepagents import WeakfsSandbox
from weakfs.tools import ToolCall

# The calls that the model makes, one in each reply. The text of the second edit does not exist.
FIRST: list[tuple[str, dict[str, object]]] = [
    ("edit_file", {"file_path": "/workspace/src/app.py", "old_string": "port = 80", "new_string": "port = 8000"}),
    ("write_file", {"file_path": "/workspace/docs/ports.md", "content": "8000: the server\n"}),
    (
        "edit_file",
        {"file_path": "/workspace/src/app.py", "old_string": "host = 'localhost'", "new_string": "host = ''"},
    ),
    ("execute", {"command": "cat /workspace/src/app.py; rm -r /workspace/src /workspace/docs"}),
]
SECOND: list[tuple[str, dict[str, object]]] = [
    ("write_file", {"file_path": "/workspace/notes.md", "content": "all is well\n"}),
]


class ScriptedModel(GenericFakeChatModel):
    """A model that follows a script, whatever tools there are."""

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> ScriptedModel:
        return self


def scripted(calls: list[tuple[str, dict[str, object]]]) -> ScriptedModel:
    """Return a model that makes some calls, one after another."""
    said = [
        AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call_{number}"}])
        for number, (name, arguments) in enumerate(calls)
    ]
    return ScriptedModel(messages=iter([*said, AIMessage("done")]))


def shown(root: Path) -> str:
    """Return the files of a directory in one line."""
    return " ".join(sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())) or "nothing"


def work(place: Path, calls: list[tuple[str, dict[str, object]]], *, undo: bool) -> None:
    """Let an agent work in a directory; with `undo`, first undo everything that was done before."""
    with Session.open(place / "sessions", "chat") as session:
        files = HostFilesystem(place / "project", session=session, store=place / "store")
        backend = WeakfsSandbox(session, files, caller="agent")
        if undo:
            session.restore("start")
            print(f"restored: {shown(place / 'project')}")
        else:
            session.snapshot("start")
        agent: Any = create_deep_agent(model=scripted(calls), backend=backend)
        for message in agent.invoke({"messages": [("user", "Go on.")]})["messages"]:
            if isinstance(message, ToolMessage):
                print(f"{message.name}: {message.text.splitlines()[0][:70]}")
        print(f"left: {shown(place / 'project')}")
        print("calls:", " ".join(f"{call.tool}:{call.status}" for call in session[ToolCall].all()))


def main() -> None:
    if len(sys.argv) == 2 and Path(sys.argv[1]).is_dir():
        work(Path(sys.argv[1]), SECOND, undo=True)
        return
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        source = place / "project/src/app.py"
        source.parent.mkdir(parents=True)
        source.write_text("port = 80\n")
        work(place, FIRST, undo=False)
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", "examples.integrations.deepagents", directory], check=True)
        assert source.read_text() == "port = 80\n"


if __name__ == "__main__":
    main()
