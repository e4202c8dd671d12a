"""A thread that goes back to a checkpoint gets the files of that checkpoint."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.integrations.langchain_agent.conftest import Agent, Note, edit, write
from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.tools import ToolCall

pytestmark = [pytest.mark.usefixtures("never_hung"), pytest.mark.sampled]


def test_a_run_from_an_older_checkpoint_sees_its_files(toolset: Toolset, is_async: bool, saver: Any) -> None:
    turns = [[write("1")], [edit("1", "2")], [write("b", "/b")], []]
    agent = Agent(toolset, *turns, [edit("1", "3")], [], saver=saver, is_async=is_async)
    agent.ask()
    assert agent.shown() == {"/a": "2", "/b": "b"}
    (answer,) = agent.go_on(agent.before("model")[1].config)[1:]
    assert answer.status == "success"
    assert agent.shown() == {"/a": "3"}
    assert agent.graph.get_state(agent.config).values["weakfs_position"]["record"] == agent.session.seq


@pytest.mark.parametrize("checkpoint", range(3))
def test_tools_of_a_replayed_checkpoint_run_on_its_files(
    toolset: Toolset, note: Note, is_async: bool, checkpoint: int
) -> None:
    turns = [[write("1"), ("note", {"path": "/n", "text": "n"})], [edit("1", "2")], [write("b", "/b")], []]
    agent = Agent(toolset, *turns, [], [], [], tools=[note], is_async=is_async)
    agent.ask()
    states = agent.before("tools")
    found = agent.go_on(states[checkpoint].config)
    assert [one.status for one in found] == ["success"] * (checkpoint + 2)
    expected = [{"/a": "1", "/n": "n"}, {"/a": "2", "/n": "n"}, {"/a": "2", "/n": "n", "/b": "b"}]
    assert agent.shown() == expected[checkpoint]


@pytest.mark.slow
def test_a_thread_can_return_to_each_of_its_branches(toolset: Toolset, is_async: bool, saver: Any) -> None:
    agent = Agent(toolset, [write("1")], [], *[[]] * 20, saver=saver, is_async=is_async)
    agent.ask()
    root = agent.graph.get_state(agent.config)
    lines: list[tuple[Any, dict[str, str]]] = [(root.config, agent.shown())]
    for number in range(3):
        agent.graph = Agent(
            toolset, [write(str(number), f"/{number}")], [], *[[]] * 20, saver=saver, is_async=is_async
        ).graph
        agent.ask(config=root.config)
        lines.append((agent.graph.get_state(agent.config).config, {"/a": "1", f"/{number}": str(number)}))
        assert agent.shown() == lines[-1][1]
    for config, files in [*lines, *reversed(lines)]:
        agent.ask("and now?", config)
        assert agent.shown() == files


def test_an_updated_state_continues_from_its_files(toolset: Toolset, is_async: bool) -> None:
    from langchain_core.messages import AIMessage

    agent = Agent(toolset, [write("1")], [edit("1", "2")], [], [], is_async=is_async)
    agent.ask()
    then = agent.before("tools")[1]
    message = then.values["messages"][-1]
    changed = AIMessage("", id=message.id, tool_calls=[{**message.tool_calls[0], "args": edit("1", "9")[1]}])
    fork = agent.graph.update_state(then.config, {"messages": [changed]})
    # According to LangGraph, the fork is the latest checkpoint of the thread and need not be named.
    assert (
        fork["configurable"]["checkpoint_id"]
        == agent.graph.get_state(agent.config).config["configurable"]["checkpoint_id"]
    )
    agent.go_on()
    assert agent.shown() == {"/a": "9"}


def test_going_back_can_be_undone(toolset: Toolset) -> None:
    agent = Agent(toolset, [write("1")], [edit("1", "2")], [], [])
    agent.ask()
    agent.ask("never mind", agent.before("model")[1].config)
    assert agent.shown() == {"/a": "1"}
    agent.session.undo()
    assert agent.shown() == {"/a": "2"}


def test_changes_by_others_between_two_runs_stay(toolset: Toolset, is_async: bool) -> None:
    agent = Agent(toolset, [write("1")], [], [write("b", "/b")], [], [], is_async=is_async)
    agent.ask()
    toolset.filesystem.write("/mine", "by hand")
    agent.ask()
    assert agent.shown() == {"/a": "1", "/b": "b", "/mine": "by hand"}
    # /mine existed when the second run began.
    agent.ask("again", agent.before("model")[2].config)
    assert agent.shown() == {"/a": "1", "/mine": "by hand"}


@pytest.mark.parametrize(
    ("foreign", "left"), [(None, "1\n2\n3\n"), ("keep", "1\n2\n3\nmine\n"), ("replace", "1\n2\n3\n")]
)
def test_changes_by_other_programs_stay_in_other_files(tmp_path: Path, foreign: str | None, left: str) -> None:
    session = Session()
    toolset = Toolset(session, HostFilesystem(tmp_path, session=session))
    agent = Agent(toolset, [write("1\n2\n3\n")], [edit("1\n", "one\n")], [], [], foreign=foreign)
    agent.ask()
    (tmp_path / "a").write_text("one\n2\n3\nmine\n")
    (tmp_path / "mine").write_text("by hand")
    agent.ask("again", agent.before("model")[1].config)
    assert agent.shown() == {"/a": left, "/mine": "by hand"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_any_path_through_the_checkpoints_restores_the_files_of_each(
    toolset: Toolset, is_async: bool, seed: int
) -> None:
    from langchain.agents.middleware import ToolErrorMiddleware

    def note(path: str, text: str) -> str:
        """Write a note, and fail if it is a bad one."""
        toolset.filesystem.write(path, text)
        if text == "bad":
            raise ValueError("bad")
        return "noted"

    def turn() -> list[tuple[str, dict[str, Any]]]:
        made: list[tuple[str, dict[str, Any]]] = []
        for number in range(random.randint(1, 3)):
            path, text = f"/{random.randint(0, 3)}{number}", str(random.random())
            text = random.choice([text, text, "bad"])
            is_foreign = text == "bad" or random.random() < 0.5
            made.append(("note", {"path": path, "text": text}) if is_foreign else write(text, path))
        return made

    random = Random(seed)
    agent = Agent(toolset, [], is_async=is_async)
    agent.ask()
    known: list[tuple[Any, dict[str, str]]] = [(agent.graph.get_state(agent.config).config, {})]
    for _ in range(6):
        config, files = random.choice(known)
        turns = [turn() for _ in range(random.randint(0, 2))]
        written = [arguments for calls in turns for _, arguments in calls]
        contents = [(str(one["path"]), str(one.get("text", one.get("content")))) for one in written]
        files = files | {path: text for path, text in contents if text != "bad"}
        errors = ToolErrorMiddleware(lambda error, request: str(error))
        agent.graph = Agent(
            toolset, *turns, [], tools=[note], saver=agent.saver, is_async=is_async, middleware=[errors]
        ).graph
        agent.ask(config=config)
        assert agent.shown() == files
        known.append((agent.graph.get_state(agent.config).config, files))


def test_a_thread_that_changed_nothing_rolls_nothing_back() -> None:
    session = Session()
    agent = Agent(Toolset(session), [("ls", {"path": "/"})], [], [], [])
    agent.ask()
    InMemoryFilesystem(session).write("/mine", "by hand")
    agent.ask("again", agent.before("model")[0].config)
    assert agent.shown() == {"/mine": "by hand"}


def test_without_a_checkpointer_nothing_is_rolled_back(toolset: Toolset, is_async: bool) -> None:
    from langchain.agents import create_agent

    from tests.integrations.langchain_agent.conftest import scripted_model
    from weakfs.integrations.langchain import SessionMiddleware, structured_tools

    agent: Any = create_agent(
        scripted_model([write("1")], [], [edit("1", "2")], []),
        structured_tools(toolset),
        middleware=[SessionMiddleware(toolset)],
    )
    message = {"messages": [("user", "go")]}
    for _ in range(2):
        state = asyncio.run(agent.ainvoke(message)) if is_async else agent.invoke(message)
        assert state.keys() == {"messages"}
    assert toolset.filesystem.read("/a").content == "2"


def test_work_that_a_person_undoes_between_two_runs_stays_undone(toolset: Toolset, is_async: bool) -> None:
    agent = Agent(toolset, [write("1")], [write("b", "/b")], [], [write("c", "/c")], [], is_async=is_async)
    agent.ask()
    call = next(one.call_id for one in agent.session[ToolCall].all())
    agent.session.revert(call)
    agent.session.undo(2)
    assert agent.shown() == {"/a": "1"}
    agent.ask()
    assert agent.shown() == {"/a": "1", "/c": "c"}
