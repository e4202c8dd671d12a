"""A LangChain agent whose model follows a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weakfs.storage
from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset

Call = tuple[str, dict[str, Any]]
# The calls that the model makes in one turn.
Turn = list[Call]


def scripted_model(*turns: Turn) -> Any:
    """Return a model that makes some calls in each turn, and then says that it has finished."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Script(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Script:
            return self

    return Script(messages=iter([AIMessage("", tool_calls=_numbered(turn)) for turn in turns]))


_made = iter(range(1, 1_000_000))


def _numbered(turn: Turn) -> Any:
    return [{"name": name, "args": arguments, "id": f"call_{next(_made)}"} for name, arguments in turn]


def write(text: str, path: str = "/a") -> Call:
    return "write_file", {"path": path, "content": text}


def edit(old: str, new: str) -> Call:
    return "edit_file", {"path": "/a", "old_string": old, "new_string": new}


class Agent:
    """An agent over a toolset, in one thread; `is_async` is how it is run."""

    def __init__(
        self,
        toolset: Toolset,
        *turns: Turn,
        tools: list[Any] | None = None,
        saver: Any = None,
        thread: str = "chat",
        is_async: bool = False,
        middleware: list[Any] | None = None,
        only: list[str] | None = None,
        foreign: Any = None,
    ) -> None:
        from langchain.agents import create_agent
        from langgraph.checkpoint.memory import InMemorySaver

        from weakfs.integrations.langchain import SessionMiddleware, structured_tools

        self.session, self.files = toolset.session, toolset.filesystem
        self.saver = InMemorySaver() if saver is None else saver
        self.is_async = is_async
        self.config: Any = {"configurable": {"thread_id": thread}}
        self.graph: Any = create_agent(
            scripted_model(*turns),
            [*structured_tools(toolset), *(tools or [])],
            middleware=[*(middleware or []), SessionMiddleware(toolset, tools=only, foreign=foreign)],
            checkpointer=self.saver,
        )

    def invoke(self, given: Any, config: Any = None) -> Any:
        """Run the graph, and return its state."""
        if self.is_async:
            return asyncio.run(self.graph.ainvoke(given, config or self.config))
        return self.graph.invoke(given, config or self.config)

    def ask(self, text: str = "go on", config: Any = None) -> list[Any]:
        """Say something, and return the answers of the tools of this run."""
        return answers(self.invoke({"messages": [("user", text)]}, config))

    def go_on(self, config: Any = None) -> list[Any]:
        """Continue from a checkpoint, and return the answers of the tools of the last run."""
        return answers(self.invoke(None, config))

    def before(self, node: str) -> list[Any]:
        """Return the checkpoints before a node, oldest first."""
        found = [one for one in self.graph.get_state_history(self.config) if node in one.next]
        return found[::-1]

    def shown(self) -> dict[str, str]:
        """Return the files with their contents."""
        return {one.path: self.files.read(one.path).content for one in self.files.walk("/") if one.is_file}


def answers(state: Any) -> list[Any]:
    """Return the messages of tools since the last one of the user."""
    messages = state["messages"]
    start = max((number for number, one in enumerate(messages) if one.type == "human"), default=0)
    return [one for one in messages[start:] if one.type == "tool"]


@pytest.fixture(params=["sync", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "async")


@pytest.fixture(params=["memory", "host"])
def toolset(request: pytest.FixtureRequest, tmp_path: Path) -> Toolset:
    session = Session(session_id="main")
    if request.param == "memory":
        return Toolset(session, InMemoryFilesystem(session))
    (tmp_path / "project").mkdir()
    return Toolset(session, HostFilesystem(tmp_path / "project", session=session))


@pytest.fixture(params=["langgraph", "weakfs"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A checkpoint saver in memory, and one over a storage."""
    if request.param == "langgraph":
        from langgraph.checkpoint.memory import InMemorySaver

        yield InMemorySaver()
        return
    from weakfs.integrations.langgraph import StorageSaver

    with_storage = weakfs.storage.open(f"folder:{tmp_path}/checkpoints")
    yield StorageSaver(with_storage)
    with_storage.close()


Note = Callable[[str, str], str]


@pytest.fixture
def note(toolset: Toolset) -> Note:
    """A tool that knows nothing about the session: it writes a file, and then fails if requested."""

    def note(path: str, text: str) -> str:
        """Write a note."""
        toolset.filesystem.write(path, text)
        if text == "error":
            raise ValueError("the ink is dry")
        return f"noted {text}"

    return note
