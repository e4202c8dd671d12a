"""A thread that goes back to a checkpoint has the files of then."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.integrations.langchain_agent.conftest import Agent, Note
from weakfs import HostFilesystem, InMemoryFilesystem, Session, SessionError, Toolset
from weakfs.tools import ToolCall

pytestmark = [pytest.mark.usefixtures("never_hung"), pytest.mark.sampled]


def write(text: str, path: str = "/a") -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": text}


def edit(old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": "/a", "old_string": old, "new_string": new}


def test_a_run_from_an_older_checkpoint_sees_the_files_of_then(toolset: Toolset, is_async: bool, saver: Any) -> None:
    turns = [[write("1")], [edit("1", "2")], [write("b", "/b")], []]
    agent = Agent(toolset, *turns, [edit("1", "3")], [], saver=saver, is_async=is_async)
    agent.ask()
    assert agent.shown() == {"/a": "2", "/b": "b"}
    (answer,) = agent.go_on(agent.before("model")[1].config)[1:]
    assert answer.status == "success"
    assert agent.shown() == {"/a": "3"}
    assert agent.graph.get_state(agent.config).values["weakfs_position"]["record"] == agent.session.seq


@pytest.mark.parametrize("checkpoint", range(3))
def test_tools_of_a_checkpoint_that_is_replayed_run_on_the_files_of_then(
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
def test_every_line_of_a_thread_can_be_gone_back_to(toolset: Toolset, is_async: bool, saver: Any) -> None:
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


def test_a_state_that_was_updated_goes_on_from_its_files(toolset: Toolset, is_async: bool) -> None:
    from langchain_core.messages import AIMessage

    agent = Agent(toolset, [write("1")], [edit("1", "2")], [], [], is_async=is_async)
    agent.ask()
    then = agent.before("tools")[1]
    message = then.values["messages"][-1]
    changed = AIMessage("", id=message.id, tool_calls=[{**message.tool_calls[0], "args": edit("1", "9")[1]}])
    fork = agent.graph.update_state(then.config, {"messages": [changed]})
    # As LangGraph has it, the fork is the latest checkpoint of the thread: it need not be named.
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


def test_what_others_change_between_two_runs_stays(toolset: Toolset, is_async: bool) -> None:
    agent = Agent(toolset, [write("1")], [], [write("b", "/b")], [], [], is_async=is_async)
    agent.ask()
    toolset.filesystem.write("/mine", "by hand")
    agent.ask()
    assert agent.shown() == {"/a": "1", "/b": "b", "/mine": "by hand"}
    # It was there when the second run began.
    agent.ask("again", agent.before("model")[2].config)
    assert agent.shown() == {"/a": "1", "/mine": "by hand"}


@pytest.mark.parametrize(
    ("foreign", "left"), [(None, "1\n2\n3\n"), ("keep", "1\n2\n3\nmine\n"), ("replace", "1\n2\n3\n")]
)
def test_what_other_programs_changed_stays_elsewhere(tmp_path: Path, foreign: str | None, left: str) -> None:
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
def test_any_way_through_the_checkpoints_has_the_files_of_each(toolset: Toolset, is_async: bool, seed: int) -> None:
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


def test_a_thread_that_changed_nothing_takes_nothing_back() -> None:
    session = Session()
    agent = Agent(Toolset(session), [("ls", {"path": "/"})], [], [], [])
    agent.ask()
    InMemoryFilesystem(session).write("/mine", "by hand")
    agent.ask("again", agent.before("model")[0].config)
    assert agent.shown() == {"/mine": "by hand"}


# Interrupts


def test_resuming_keeps_what_other_tools_of_the_step_did(toolset: Toolset, is_async: bool, saver: Any) -> None:
    from langgraph.types import Command, interrupt

    def confirm(path: str) -> str:
        """Write a file once somebody agrees."""
        toolset.filesystem.write(path, "not yet")
        answer = interrupt("may I?")
        assert not toolset.filesystem.exists("/later")
        toolset.filesystem.write("/later", answer)
        return answer  # type: ignore[no-any-return]

    turn = [write("1"), ("confirm", {"path": "/half"})]
    agent = Agent(toolset, turn, [], tools=[confirm], saver=saver, is_async=is_async)
    agent.ask()
    # What the tool did before the interrupt is undone: it runs from its beginning again.
    assert agent.shown() == {"/a": "1"}
    found = answers_of(agent.invoke(Command(resume="yes")))
    assert [one.status for one in found] == ["success", "success"]
    assert agent.shown() == {"/a": "1", "/half": "not yet", "/later": "yes"}
    calls = [(call.tool, call.error_code) for call in agent.session[ToolCall].all() if call.tool == "confirm"]
    assert calls == [("confirm", "interrupted"), ("confirm", None)]


def answers_of(state: Any) -> list[Any]:
    return [one for one in state["messages"] if one.type == "tool"]


def test_a_call_that_a_person_approves_rolls_nothing_back(toolset: Toolset, is_async: bool, saver: Any) -> None:
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langgraph.types import Command

    approval = HumanInTheLoopMiddleware(interrupt_on={"edit_file": True})
    agent = Agent(toolset, [write("1")], [edit("1", "2")], [], saver=saver, is_async=is_async, middleware=[approval])
    agent.ask()
    toolset.filesystem.write("/mine", "meanwhile")
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}))
    assert agent.shown() == {"/a": "2", "/mine": "meanwhile"}


def test_resuming_after_a_tool_that_raised_keeps_what_the_others_did(toolset: Toolset, is_async: bool) -> None:
    tries: list[int] = []

    def flaky() -> str:
        """Fail the first time."""
        toolset.filesystem.write("/flaky", "x")
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("no network")
        return "done"

    agent = Agent(toolset, [write("1"), ("flaky", {})], [], tools=[flaky], is_async=is_async)
    with pytest.raises(ConnectionError):
        agent.ask()
    before = len(agent.session[ToolCall].all())
    agent.go_on()
    assert agent.shown() == {"/a": "1", "/flaky": "x"}
    assert len(agent.session[ToolCall].all()) - before <= 2


@pytest.mark.parametrize("knows_session", [True, False])
def test_an_interrupt_of_an_agent_inside_a_tool_keeps_what_it_did(
    toolset: Toolset, is_async: bool, knows_session: bool
) -> None:
    from langchain.agents import create_agent
    from langchain_core.tools import StructuredTool
    from langgraph.types import Command, interrupt

    from tests.integrations.langchain_agent.conftest import scripted_model
    from weakfs.integrations.langchain import SessionMiddleware, structured_tools

    def confirm() -> str:
        """Ask somebody."""
        return str(interrupt("may I?"))

    helper: Any = create_agent(
        scripted_model([write("1")], [("confirm", {})], [edit("1", "2")], []),
        [*structured_tools(toolset), confirm],
        middleware=[SessionMiddleware(toolset)] if knows_session else [],
    )

    def delegate(task: str) -> str:
        """Let a helper do it."""
        return str(helper.invoke({"messages": [("user", task)]})["messages"][-2].content)

    async def adelegate(task: str) -> str:
        return str((await helper.ainvoke({"messages": [("user", task)]}))["messages"][-2].content)

    tool = StructuredTool.from_function(delegate, adelegate)
    agent = Agent(toolset, [("delegate", {"task": "it"})], [], tools=[tool], is_async=is_async)
    agent.ask()
    assert agent.shown() == {"/a": "1"}
    agent.invoke(Command(resume="yes"))
    assert agent.shown() == {"/a": "2"}


# Threads and processes


def test_a_thread_of_its_own_session_leaves_the_other_alone(saver: Any) -> None:
    sessions = {name: Session(session_id=name) for name in ("ann", "ben")}
    agents = {
        name: Agent(Toolset(session), [write("1")], [edit("1", name)], [], [], saver=saver, thread=name)
        for name, session in sessions.items()
    }
    for agent in agents.values():
        agent.ask()
    agents["ann"].ask("again", agents["ann"].before("model")[1].config)
    assert [agent.shown() for agent in agents.values()] == [{"/a": "1"}, {"/a": "ben"}]


def test_a_thread_does_not_take_back_what_another_did_in_the_same_session(toolset: Toolset) -> None:
    ann = Agent(toolset, [write("1")], [], [write("2")], [], [], thread="ann")
    ben = Agent(toolset, [write("b", "/b")], [], thread="ben")
    ann.ask()
    ben.ask()
    ann.ask()
    assert ann.shown() == {"/a": "2", "/b": "b"}
    with pytest.raises(SessionError, match="another thread has worked in it since"):
        ann.ask("again", ann.before("model")[1].config)
    assert ann.shown() == {"/a": "2", "/b": "b"}


def test_runs_of_two_threads_at_once_keep_both(toolset: Toolset) -> None:
    agents = [Agent(toolset, [write(name, f"/{name}")], [], thread=name) for name in ("ann", "ben")]

    async def work() -> None:
        message = {"messages": [("user", "go")]}
        await asyncio.gather(*(agent.graph.ainvoke(message, agent.config) for agent in agents))

    asyncio.run(work())
    assert agents[0].shown() == {"/ann": "ann", "/ben": "ben"}


def test_another_process_goes_back_as_well(tmp_path: Path) -> None:
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


def test_a_call_whose_answer_was_lost_is_made_again_on_the_files_before_it(toolset: Toolset, saver: Any) -> None:
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


def test_without_a_checkpointer_nothing_is_taken_back(toolset: Toolset, is_async: bool) -> None:
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


def test_the_files_of_a_deep_agent_go_back_too(toolset: Toolset, is_async: bool) -> None:
    from deepagents import create_deep_agent
    from langgraph.checkpoint.memory import InMemorySaver

    from tests.integrations.langchain_agent.conftest import scripted_model
    from weakfs.integrations.deepagents import WeakfsBackend
    from weakfs.integrations.langchain import SessionMiddleware

    backend = WeakfsBackend(toolset.session, toolset.filesystem)
    turns = [
        [("write_file", {"file_path": f"/{name}.txt", "content": "1"}) for name in "ab"],
        [("edit_file", {"file_path": "/a.txt", "old_string": "1", "new_string": "2"})],
        [("edit_file", {"file_path": "/a.txt", "old_string": "none", "new_string": "2"})],
    ]
    agent: Any = create_deep_agent(
        model=scripted_model(*turns, [], []),
        backend=backend,
        middleware=[SessionMiddleware(Toolset(toolset.session, backend.files))],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "chat"}}

    def invoke(given: Any, at: Any) -> Any:
        return asyncio.run(agent.ainvoke(given, at)) if is_async else agent.invoke(given, at)

    invoke({"messages": [("user", "go")]}, config)
    assert toolset.filesystem.read("/a.txt").content == "2"
    before = [one for one in agent.get_state_history(config) if one.next == ("model",)][2]
    invoke(None, before.config)
    assert [toolset.filesystem.read(f"/{name}.txt").content for name in "ab"] == ["1", "1"]


def test_operations_of_a_deep_agent_are_undone_one_by_one_and_the_thread_goes_on(
    toolset: Toolset, is_async: bool
) -> None:
    from deepagents import create_deep_agent
    from langgraph.checkpoint.memory import InMemorySaver

    from tests.integrations.langchain_agent.conftest import scripted_model
    from weakfs.integrations.deepagents import WeakfsBackend
    from weakfs.integrations.langchain import SessionMiddleware

    session, files = toolset.session, toolset.filesystem
    backend = WeakfsBackend(session, files)
    turns = [
        [("write_file", {"file_path": "/a.txt", "content": "1\n2\n3\n"})],
        [("write_file", {"file_path": "/b.txt", "content": "1"})],
        [("edit_file", {"file_path": "/a.txt", "old_string": "3", "new_string": "4"})],
        [],
        [("write_file", {"file_path": "/c.txt", "content": "1"})],
        [],
        [],
    ]
    agent: Any = create_deep_agent(
        model=scripted_model(*turns),
        backend=backend,
        middleware=[SessionMiddleware(Toolset(session, backend.files))],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "chat"}}

    def invoke(given: Any, at: Any = config) -> None:
        _ = asyncio.run(agent.ainvoke(given, at)) if is_async else agent.invoke(given, at)

    def shown() -> dict[str, str]:
        return {one.path: files.read(one.path).content for one in files.walk("/") if one.is_file}

    invoke({"messages": [("user", "go")]})
    wrote_b = [call.call_id for call in session[ToolCall].all() if call.tool == "write"][1]
    assert session.revert(wrote_b).paths == ("/b.txt",)
    session.undo()
    # The call of the tool around it has the same changes.
    around = [call.call_id for call in session[ToolCall].all() if call.tool == "write_file"][1]
    assert session.revert(around).paths == ("/b.txt",)
    assert shown() == {"/a.txt": "1\n2\n4\n"}
    assert session.undo().paths == ("/b.txt",)
    assert session.undo().paths == ("/a.txt",)
    assert shown() == {"/a.txt": "1\n2\n3\n", "/b.txt": "1"}
    # A run that goes on from the latest checkpoint keeps what was taken back.
    invoke({"messages": [("user", "go on")]})
    assert shown() == {"/a.txt": "1\n2\n3\n", "/b.txt": "1", "/c.txt": "1"}
    first = [one for one in agent.get_state_history(config) if one.next == ("model",)][-2]
    invoke(None, first.config)
    assert shown() == {"/a.txt": "1\n2\n3\n"}


def test_work_that_a_person_takes_back_between_two_runs_stays_taken_back(toolset: Toolset, is_async: bool) -> None:
    agent = Agent(toolset, [write("1")], [write("b", "/b")], [], [write("c", "/c")], [], is_async=is_async)
    agent.ask()
    call = next(one.call_id for one in agent.session[ToolCall].all())
    agent.session.revert(call)
    agent.session.undo(2)
    assert agent.shown() == {"/a": "1"}
    agent.ask()
    assert agent.shown() == {"/a": "1", "/c": "c"}


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
