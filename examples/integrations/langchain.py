"""An agent works on a directory, breaks it, and goes back in time: `python -m examples.integrations.langchain`.

The model is a script, so no network is needed. The second half runs in another process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import ToolErrorMiddleware
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage

import weakfs.storage
from weakfs import HostFilesystem, Session, Toolset
from weakfs.integrations.langchain import SessionMiddleware, structured_tools
from weakfs.integrations.langgraph import StorageSaver
from weakfs.storage import Storage
from weakfs.tools import ToolCall

# The calls that the model makes, one in each reply. The script fails halfway, and the last command deletes too much.
FIRST: list[tuple[str, dict[str, object]]] = [
    ("edit_file", {"path": "/src/app.py", "old_string": "port = 80", "new_string": "port = 8000"}),
    ("write_file", {"path": "/docs/ports.md", "content": "8000: the server\n"}),
    ("shell", {"command": "rm docs/ports.md; echo 'port = 1' > src/app.py; no-such-program"}),
    ("shell", {"command": "rm -r src docs"}),
]
SECOND: list[tuple[str, dict[str, object]]] = [
    ("write_file", {"path": "/notes.md", "content": "all is well\n"}),
]
CONFIG: Any = {"configurable": {"thread_id": "chat"}}


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


def agent_of(place: Path, session: Session, storage: Storage, calls: list[tuple[str, dict[str, object]]]) -> Any:
    """Return an agent that works in a directory, with weakfs tools and one tool of its own."""
    project = place / "project"

    def shell(command: str) -> str:
        """Run a command."""
        done = subprocess.run(command, shell=True, cwd=project, capture_output=True, text=True, check=True)
        return done.stdout or "ok"

    toolset = Toolset(session, HostFilesystem(project, session=session, store=place / "store"))
    return create_agent(
        scripted(calls),
        [*structured_tools(toolset), shell],
        middleware=[ToolErrorMiddleware(lambda error, request: str(error)), SessionMiddleware(toolset)],
        checkpointer=StorageSaver(storage),
    )


def run(agent: Any, given: Any, config: Any = CONFIG) -> None:
    """Run an agent, and print the answers of its tools."""
    known = {message.id for message in agent.get_state(config).values.get("messages", [])}
    for message in agent.invoke(given, config)["messages"]:
        if isinstance(message, ToolMessage) and message.id not in known:
            print(f"{message.name} {message.status}: {message.content}"[:90])


def checkpoints(place: Path) -> closing[Storage]:
    return closing(weakfs.storage.open(f"folder:{place / 'checkpoints'}"))


def first_half(place: Path) -> None:
    with Session.open(place / "sessions", "chat") as session, checkpoints(place) as storage:
        agent = agent_of(place, session, storage, FIRST)
        run(agent, {"messages": [("user", "Move the server to port 8000.")]})
        print(f"left: {shown(place / 'project')}", flush=True)


def second_half(place: Path) -> None:
    with Session.open(place / "sessions", "chat") as session, checkpoints(place) as storage:
        agent = agent_of(place, session, storage, SECOND)
        # The checkpoint before the command that deleted too much.
        history = list(agent.get_state_history(CONFIG))
        before = [state for state in history if state.next == ("model",)][1]
        run(agent, {"messages": [("user", "Leave the files, and write a note.")]}, before.config)
        print(f"left: {shown(place / 'project')}")
        print((place / "project" / "src" / "app.py").read_text().strip())
        print("calls:", " ".join(call.tool for call in session[ToolCall].all()))


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "project" / "src").mkdir(parents=True)
        (place / "project" / "src" / "app.py").write_text("port = 80\n")
        first_half(place)
        subprocess.run([sys.executable, "-m", "examples.integrations.langchain", str(place)], check=True)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        second_half(Path(sys.argv[1]))
    else:
        main()
