"""An agent that is a node of a larger graph: its files go back with the thread of that graph."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.integrations.langchain_agent.conftest import Turn, scripted_model
from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.tools import ToolCall

pytestmark = [pytest.mark.usefixtures("never_hung"), pytest.mark.sampled]


@pytest.fixture(params=["memory", "host", "folder"])
def toolset(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Toolset]:
    """A toolset over files in memory, over a directory, and over a session in storage."""
    if request.param == "folder":
        with Session.open(tmp_path / "stored", "main") as session:
            yield Toolset(session, InMemoryFilesystem(session))
        return
    session = Session(session_id="main")
    if request.param == "memory":
        yield Toolset(session, InMemoryFilesystem(session))
        return
    (tmp_path / "project").mkdir()
    yield Toolset(session, HostFilesystem(tmp_path / "project", session=session))


def write(path: str, text: str = "1") -> Turn:
    return [("write_file", {"path": path, "content": text})]


def agent(toolset: Toolset, *turns: Turn, tools: tuple[Any, ...] = (), middleware: Any = None) -> Any:
    """Return an agent whose model makes these turns, and then ends each run with an answer.

    Agents that run side by side need the same middleware, so that their calls take turns.
    """
    from langchain.agents import create_agent

    from weakfs.integrations.langchain import SessionMiddleware, structured_tools

    return create_agent(
        scripted_model(*turns),
        [*structured_tools(toolset), *tools],
        middleware=[middleware or SessionMiddleware(toolset)],
    )


def rounds(count: int, prefix: str = "/") -> list[Turn]:
    """Return the turns of an agent that writes a new file in each of its runs."""
    return [turn for number in range(count) for turn in (write(f"{prefix}{number}"), [])]


class Graph:
    """A graph with a node for each agent, one after another or side by side, on one thread."""

    def __init__(
        self,
        toolset: Toolset,
        nodes: dict[str, Any],
        saver: Any,
        *,
        is_async: bool = False,
        depth: int = 0,
        side_by_side: bool = False,
    ) -> None:
        from langgraph.graph import END, START, MessagesState, StateGraph

        self.toolset, self.is_async = toolset, is_async
        self.config: Any = {"configurable": {"thread_id": "outer"}}
        builder: Any = StateGraph(MessagesState)
        names = [*nodes]
        for name, node in nodes.items():
            for _ in range(depth):
                around: Any = StateGraph(MessagesState)
                around.add_node("within", node)
                around.add_edge(START, "within")
                around.add_edge("within", END)
                node = around.compile()
            builder.add_node(name, node)
        edges = zip([START, *names], [*names, END], strict=True)
        for one, next_one in [(START, name) for name in names] if side_by_side else edges:
            builder.add_edge(one, next_one)
        self.graph = builder.compile(checkpointer=saver)

    def run(self, given: Any = None, config: Any = None) -> Any:
        """Run the graph from a checkpoint, or from the latest one; without `given`, it continues."""
        messages = None if given is None else {"messages": [("user", given)]}
        if self.is_async:
            return asyncio.run(self.graph.ainvoke(messages, config or self.config))
        return self.graph.invoke(messages, config or self.config)

    def resume(self, command: Any) -> None:
        """Continue after an interrupt."""
        _ = (
            asyncio.run(self.graph.ainvoke(command, self.config))
            if self.is_async
            else self.graph.invoke(command, self.config)
        )

    def before(self, node: str) -> list[Any]:
        """Return the checkpoints before a node, oldest first."""
        return [one for one in self.graph.get_state_history(self.config) if node in one.next][::-1]

    @property
    def shown(self) -> dict[str, str]:
        files = self.toolset.filesystem
        return {one.path: files.read(one.path).content for one in files.walk("/") if one.is_file}


@pytest.mark.parametrize("depth", range(3))
def test_files_go_back_with_the_thread_of_the_outer_graph(
    toolset: Toolset, is_async: bool, saver: Any, depth: int
) -> None:
    nodes = {"a": agent(toolset, *rounds(9, "/a")), "b": agent(toolset, *rounds(9, "/b"))}
    graph = Graph(toolset, nodes, saver, is_async=is_async, depth=depth)
    graph.run("first")
    graph.run("second")
    assert graph.shown.keys() == {"/a0", "/b0", "/a1", "/b1"}
    before_second_b = graph.before("b")[1]
    before_first_b = graph.before("b")[0]
    graph.run(config=before_second_b.config)
    assert graph.shown.keys() == {"/a0", "/b0", "/a1", "/b2"}
    graph.run(config=before_first_b.config)
    assert graph.shown.keys() == {"/a0", "/b3"}
    # An abandoned line can be continued later, and each line has its own files.
    graph.run(config=before_second_b.config)
    assert graph.shown.keys() == {"/a0", "/b0", "/a1", "/b4"}
    graph.run(config=graph.before("a")[0].config)
    assert graph.shown.keys() == {"/a2", "/b5"}


def test_an_agent_that_a_node_calls_goes_back_as_well(toolset: Toolset, is_async: bool, saver: Any) -> None:
    inner = agent(toolset, *rounds(9))

    def node(state: Any) -> Any:
        return {"messages": inner.invoke({"messages": state["messages"]})["messages"][-1:]}

    async def anode(state: Any) -> Any:
        return {"messages": (await inner.ainvoke({"messages": state["messages"]}))["messages"][-1:]}

    graph = Graph(toolset, {"a": anode if is_async else node}, saver, is_async=is_async)
    graph.run("first")
    graph.run("second")
    graph.run(config=graph.before("a")[1].config)
    assert graph.shown.keys() == {"/0", "/2"}


def test_concurrent_agents_keep_each_others_work(toolset: Toolset, is_async: bool, saver: Any) -> None:
    names = ["a", "b", "c"]
    nodes = {name: agent(toolset, *rounds(9, f"/{name}")) for name in names}
    graph = Graph(toolset, nodes, saver, is_async=is_async, side_by_side=True)
    graph.run("first")
    graph.run("second")
    assert graph.shown.keys() == {f"/{name}{number}" for name in names for number in range(2)}
    graph.run(config=graph.before("a")[0].config)
    assert graph.shown.keys() == {f"/{name}2" for name in names}


def test_an_updated_state_of_the_graph_continues_from_its_files(toolset: Toolset, saver: Any) -> None:
    graph = Graph(toolset, {"a": agent(toolset, *rounds(9, "/a")), "b": agent(toolset, *rounds(9, "/b"))}, saver)
    graph.run("first")
    graph.run("second")
    fork = graph.graph.update_state(graph.before("b")[0].config, {"messages": [("user", "otherwise")]}, as_node="a")
    graph.run(config=fork)
    assert graph.shown.keys() == {"/a0", "/b2"}


def test_changes_by_a_person_between_two_runs_stay_until_the_thread_goes_back(toolset: Toolset, saver: Any) -> None:
    graph = Graph(toolset, {"a": agent(toolset, *rounds(9))}, saver)
    graph.run("first")
    toolset.filesystem.write("/mine", "by hand")
    graph.run("second")
    graph.toolset.session.undo()
    graph.run("third")
    assert graph.shown.keys() == {"/0", "/mine", "/2"}
    graph.run(config=graph.before("a")[1].config)
    assert graph.shown.keys() == {"/0", "/mine", "/3"}
    graph.run(config=graph.before("a")[0].config)
    assert graph.shown.keys() == {"/4"}


def test_resuming_an_interrupted_agent_keeps_its_changes(toolset: Toolset, is_async: bool, saver: Any) -> None:
    from langchain_core.tools import tool
    from langgraph.types import Command, interrupt

    from weakfs.integrations.langchain import SessionMiddleware

    @tool
    def ask() -> str:
        """Ask a person."""
        return str(interrupt("may I?"))

    turns: list[Turn] = [write("/before"), [("ask", {})], write("/after"), []]
    shared = SessionMiddleware(toolset)
    nodes = {
        "a": agent(toolset, *turns, tools=(ask,), middleware=shared),
        "b": agent(toolset, *rounds(9, "/b"), middleware=shared),
    }
    graph = Graph(toolset, nodes, saver, is_async=is_async, side_by_side=True)
    graph.run("go")
    assert graph.shown.keys() == {"/before", "/b0"}
    go_on: Command[Any] = Command(resume="yes")
    graph.resume(go_on)
    assert graph.shown.keys() == {"/before", "/b0", "/after"}
    calls = [one.call_id for one in toolset.session[ToolCall].all()]
    assert len(calls) == len({*calls})


def test_another_process_can_take_a_graph_back(tmp_path: Path) -> None:
    import weakfs.storage
    from weakfs.integrations.langgraph import StorageSaver

    # For each process, the run that it goes back to, and the files afterwards.
    for number, expected in ((None, {"/0"}), (None, {"/0", "/1"}), (1, {"/0", "/2"}), (0, {"/3"})):
        session = Session.open(tmp_path / "stored")
        with session, closing(weakfs.storage.open(f"folder:{tmp_path}/checkpoints")) as storage:
            toolset = Toolset(session)
            made = len(session[ToolCall].all())
            graph = Graph(toolset, {"a": agent(toolset, *rounds(9)[2 * made :])}, StorageSaver(storage))
            if number is None:
                graph.run("go")
            else:
                graph.run(config=graph.before("a")[number].config)
            assert graph.shown.keys() == expected


def test_a_graph_goes_back_while_its_checkpoint_is_still_being_stored(toolset: Toolset, is_async: bool) -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    class SlowSaver(InMemorySaver):
        def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            time.sleep(0.05)
            return super().put(config, checkpoint, metadata, new_versions)

        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            await asyncio.sleep(0.05)
            return super().put(config, checkpoint, metadata, new_versions)

    graph = Graph(toolset, {"a": agent(toolset, *rounds(9))}, SlowSaver(), is_async=is_async)
    graph.run("first")
    after_first = graph.graph.get_state(graph.config)
    graph.run("second")
    graph.run("otherwise", after_first.config)
    assert graph.shown.keys() == {"/0", "/2"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_any_path_through_the_checkpoints_of_a_graph_restores_the_files_of_each(
    toolset: Toolset, is_async: bool, saver: Any, seed: int
) -> None:
    """Each step is checked by a separate agent, which finds the files of the checkpoint that it runs from."""
    random = Random(seed)

    def turns(name: str) -> list[Turn]:
        made: list[Turn] = []
        for number in range(40):
            made += [write(f"/{name}{random.randint(0, 2)}", f"{number}{name}") for _ in range(random.randint(0, 2))]
            made.append([])
        return made

    def plain(state: Any) -> Any:
        return {"messages": [("ai", "nothing to do here")]}

    nodes = {"p": plain, "a": agent(toolset, *turns("a")), "q": plain, "b": agent(toolset, *turns("b"))}
    graph = Graph(toolset, nodes, saver, is_async=is_async, depth=seed % 2)
    # The files at each checkpoint that was the latest one after a run, by its id.
    files: dict[str, dict[str, str]] = {}
    config = None
    for number in range(10):
        graph.run(f"turn {number}" if config is None or not _next(graph, config) else None, config)
        latest = graph.graph.get_state(graph.config)
        files[latest.config["configurable"]["checkpoint_id"]] = graph.shown
        config = random.choice([None, None, {"configurable": latest.config["configurable"]}])
        if random.random() < 0.5:
            chosen = random.choice([*files])
            config = {"configurable": {**graph.config["configurable"], "checkpoint_id": chosen}}
            before = toolset.session.seq
            seen = Seen(toolset)
            probe = Graph(toolset, {"p": plain, "s": seen.agent, "a": nodes["a"]}, saver, is_async=is_async)
            probe.run("look", config)
            assert seen.files == files[chosen], (number, before)
            latest = graph.graph.get_state(graph.config)
            files[latest.config["configurable"]["checkpoint_id"]] = graph.shown
            config = None


class Seen:
    """An agent that looks at the files when it begins."""

    def __init__(self, toolset: Toolset) -> None:
        from langchain_core.tools import tool

        self.files: dict[str, str] = {}

        @tool
        def look() -> str:
            """Look at the files."""
            files = toolset.filesystem
            self.files = {one.path: files.read(one.path).content for one in files.walk("/") if one.is_file}
            return "seen"

        self.agent = agent(toolset, [("look", {})], [], tools=(look,))


def _next(graph: Graph, config: Any) -> bool:
    return bool(graph.graph.get_state(config).next)
