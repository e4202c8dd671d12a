"""Threads and processes that work on one session, and the ids of their calls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.langchain_agent.conftest import Agent, edit, write
from weakfs import InMemoryFilesystem, Session, SessionError, Toolset

pytestmark = [pytest.mark.usefixtures("never_hung"), pytest.mark.sampled]


def test_a_thread_with_its_own_session_does_not_affect_the_other(saver: Any) -> None:
    sessions = {name: Session(session_id=name) for name in ("ann", "ben")}
    agents = {
        name: Agent(Toolset(session), [write("1")], [edit("1", name)], [], [], saver=saver, thread=name)
        for name, session in sessions.items()
    }
    for agent in agents.values():
        agent.ask()
    agents["ann"].ask("again", agents["ann"].before("model")[1].config)
    assert [agent.shown() for agent in agents.values()] == [{"/a": "1"}, {"/a": "ben"}]


def test_a_thread_does_not_roll_back_changes_by_another_in_the_same_session(toolset: Toolset) -> None:
    ann = Agent(toolset, [write("1")], [], [write("2")], [], [], thread="ann")
    ben = Agent(toolset, [write("b", "/b")], [], thread="ben")
    ann.ask()
    ben.ask()
    ann.ask()
    assert ann.shown() == {"/a": "2", "/b": "b"}
    with pytest.raises(SessionError, match="another thread has worked in it since"):
        ann.ask("again", ann.before("model")[1].config)
    assert ann.shown() == {"/a": "2", "/b": "b"}


def test_concurrent_runs_of_two_threads_keep_both_changes(toolset: Toolset) -> None:
    agents = [Agent(toolset, [write(name, f"/{name}")], [], thread=name) for name in ("ann", "ben")]

    async def work() -> None:
        message = {"messages": [("user", "go")]}
        await asyncio.gather(*(agent.graph.ainvoke(message, agent.config) for agent in agents))

    asyncio.run(work())
    assert agents[0].shown() == {"/ann": "ann", "/ben": "ben"}


def test_another_process_can_go_back_as_well(tmp_path: Path) -> None:
    import weakfs.storage
    from weakfs.integrations.langgraph import StorageSaver

    def opened() -> tuple[Session, Any]:
        return Session.open(tmp_path / "sessions", "main"), weakfs.storage.open(f"folder:{tmp_path}/checkpoints")

    session, storage = opened()
    agent = Agent(Toolset(session), [write("1")], [edit("1", "2")], [], saver=StorageSaver(storage))
    agent.ask()
    session.close()
    storage.close()

    session, storage = opened()
    later = Agent(Toolset(session), [write("b", "/b")], [], [], saver=StorageSaver(storage))
    later.ask()
    assert later.shown() == {"/a": "2", "/b": "b"}
    later.ask("again", later.before("model")[1].config)
    assert later.shown() == {"/a": "1"}
    session.close()
    storage.close()


def test_a_call_whose_answer_was_lost_is_repeated_on_the_files_before_it(toolset: Toolset, saver: Any) -> None:
    class Crash(BaseException):
        pass

    put_writes = saver.put_writes

    def crash(config: Any, writes: Any, *rest: Any) -> None:
        if any(channel == "messages" for channel, _ in writes):
            raise Crash
        put_writes(config, writes, *rest)

    def append(text: str) -> str:
        """Append to a file."""
        fs = toolset.filesystem
        fs.write("/log", (fs.read("/log").content if fs.exists("/log") else "") + text)
        return "appended"

    agent = Agent(toolset, [("append", {"text": "x"})], [], tools=[append], saver=saver)
    agent.graph.invoke({"messages": [("user", "go")]}, agent.config, interrupt_before=["tools"])
    saver.put_writes = crash
    with pytest.raises(Crash):
        agent.go_on()
    saver.put_writes = put_writes
    assert agent.shown() == {"/log": "x"}
    agent.go_on()
    assert agent.shown() == {"/log": "x"}


@pytest.mark.parametrize("thread", ["", "a/b", "\ud800", "x" * 3000, "chat@12345678.12345678", "|", "a\nb", 7])
def test_the_id_of_a_thread_may_be_anything(thread: Any) -> None:
    session = Session(session_id="main")
    toolset = Toolset(session, InMemoryFilesystem(session))
    turns = [[write("1")], [], [write("2")], [], []]
    agent = Agent(toolset, *turns, thread=thread)
    agent.ask()
    agent.ask()
    assert agent.shown() == {"/a": "2"}
    agent.go_on(agent.before("model")[1].config)
    assert agent.shown() == {"/a": "1"}
