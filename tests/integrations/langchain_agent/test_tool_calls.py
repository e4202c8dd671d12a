"""Each tool call of an agent of LangChain is a transaction of a session."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.langchain_agent.conftest import Agent, Note
from weakfs import HostFilesystem, InMemoryFilesystem, Session, Toolset
from weakfs.backends import MountedFilesystem
from weakfs.tools import Capability, Policy, PolicyRule, ToolCall

pytestmark = [pytest.mark.usefixtures("never_hung"), pytest.mark.sampled]


def statuses(agent: Agent) -> list[tuple[str, str, str | None]]:
    return [(call.tool, call.status, call.error_code) for call in agent.session[ToolCall].all()]


def test_an_ordinary_tool_becomes_a_call_that_can_be_undone(toolset: Toolset, note: Note, is_async: bool) -> None:
    agent = Agent(toolset, [("note", {"path": "/a", "text": "one"})], [], tools=[note], is_async=is_async)
    (answer,) = agent.ask()
    assert (answer.content, answer.status) == ("noted one", "success")
    (call,) = agent.session[ToolCall].all()
    assert (call.tool, call.caller, call.summary) == ("note", "langchain/chat", "noted one")
    assert call.read_arguments() == {"path": "/a", "text": "one"}
    agent.session.revert(call.call_id)
    assert agent.shown() == {}


def test_a_tool_that_raises_leaves_no_change(toolset: Toolset, note: Note, is_async: bool) -> None:
    agent = Agent(toolset, [("note", {"path": "/a", "text": "error"})], [], tools=[note], is_async=is_async)
    with pytest.raises(ValueError, match="the ink is dry"):
        agent.ask()
    assert agent.shown() == {}
    assert statuses(agent) == [("note", "error", "tool_failed")]


def test_a_tool_whose_message_is_an_error_leaves_no_change(toolset: Toolset, note: Note, is_async: bool) -> None:
    from langchain.agents.middleware import ToolErrorMiddleware

    tool_errors = ToolErrorMiddleware(lambda error, request: str(error))
    turn = [("note", {"path": "/a", "text": "error"}), ("note", {"path": "/b", "text": "good"})]
    agent = Agent(toolset, turn, [], tools=[note], is_async=is_async, middleware=[tool_errors])
    first, second = agent.ask()
    assert (first.content, first.status, second.status) == ("the ink is dry", "error", "success")
    assert agent.shown() == {"/b": "good"}


def test_an_error_handled_by_an_inner_middleware_leaves_no_change(toolset: Toolset, note: Note) -> None:
    from langchain.agents import create_agent
    from langchain.agents.middleware import ToolErrorMiddleware

    from tests.integrations.langchain_agent.conftest import scripted_model
    from weakfs.integrations.langchain import SessionMiddleware

    tool_errors = ToolErrorMiddleware(lambda error, request: str(error))
    agent: Any = create_agent(
        scripted_model([("note", {"path": "/a", "text": "error"})], []),
        [note],
        middleware=[SessionMiddleware(toolset), tool_errors],
    )
    *_, answer, _ = agent.invoke({"messages": [("user", "go")]})["messages"]
    assert (answer.content, answer.status) == ("the ink is dry", "error")
    assert not toolset.filesystem.exists("/a")


def test_changes_by_a_program_to_host_files_are_undone(tmp_path: Path, is_async: bool) -> None:
    def shell(command: str) -> str:
        """Run a command."""
        import subprocess

        return subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    (tmp_path / "old").write_text("old\n")
    session = Session()
    toolset = Toolset(session, HostFilesystem(tmp_path, session=session))
    turns = [[("shell", {"command": "echo new > new"})], [("shell", {"command": "rm old; echo half > half; false"})]]
    agent = Agent(toolset, *turns, tools=[shell], is_async=is_async)
    with pytest.raises(Exception, match="exit status 1"):
        agent.ask()
    assert agent.shown() == {"/old": "old\n", "/new": "new\n"}
    session.undo()
    assert agent.shown() == {"/old": "old\n"}


def test_parallel_tools_have_separate_transactions(toolset: Toolset, note: Note, is_async: bool) -> None:
    from langchain.agents.middleware import ToolErrorMiddleware

    def broken(path: str) -> str:
        """Write a file, and fail."""
        toolset.filesystem.write(path, "broken")
        raise OSError("no ink")

    turn = [("note", {"path": f"/{number}", "text": str(number)}) for number in range(4)]
    turn[1:1] = [("broken", {"path": "/0"}), ("write_file", {"path": "/w", "content": "w"})]
    turn += [("broken", {"path": "/b"})]
    agent = Agent(
        toolset,
        turn,
        [],
        tools=[note, broken],
        is_async=is_async,
        middleware=[ToolErrorMiddleware(lambda error, request: str(error))],
    )
    found = agent.ask()
    assert [one.status for one in found] == ["success", "error", "success", *["success"] * 3, "error"]
    assert agent.shown() == {"/0": "0", "/1": "1", "/2": "2", "/3": "3", "/w": "w"}
    position = agent.graph.get_state(agent.config).values["weakfs_position"]
    last = max(call.last_seq or 0 for call in agent.session[ToolCall].all() if call.status == "ok")
    assert position["session"] == "main"
    assert last <= position["record"] <= agent.session.seq
    # Each of them can be undone separately.
    call = next(one for one in agent.session[ToolCall].all() if one.read_arguments() == {"path": "/2", "text": "2"})
    agent.session.revert(call.call_id)
    assert agent.shown() == {"/0": "0", "/1": "1", "/3": "3", "/w": "w"}


def test_conflicting_parallel_tools_in_memory_lose_no_change() -> None:
    session = Session()
    toolset = Toolset(session)
    fs = toolset.filesystem
    fs.write("/a", "0\n")
    both = asyncio.Barrier(2)

    async def count(by: int) -> str:
        """Count."""
        found = int(fs.read("/a").content)
        await both.wait()
        fs.write("/a", f"{found + by}\n")
        return "counted"

    agent = Agent(toolset, [("count", {"by": 1}), ("count", {"by": 2})], [], tools=[count], is_async=True)
    found = sorted(agent.ask(), key=lambda one: str(one.status))
    assert [one.status for one in found] == ["error", "success"]
    assert "The changes that the tool made were undone" in found[0].content
    assert agent.shown() in ({"/a": "1\n"}, {"/a": "2\n"})


def test_a_cancelled_tool_leaves_no_change(toolset: Toolset) -> None:
    async def stuck() -> str:
        """Write a file, and wait forever."""
        toolset.filesystem.write("/a", "half")
        began.set()
        await asyncio.Event().wait()
        return ""

    async def work() -> None:
        run = asyncio.create_task(agent.graph.ainvoke({"messages": [("user", "go")]}, agent.config))
        await began.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    began = asyncio.Event()
    agent = Agent(toolset, [("stuck", {})], [], tools=[stuck])
    asyncio.run(work())
    assert agent.shown() == {}
    assert statuses(agent) == [("stuck", "error", "cancelled")]


def test_a_refusal_by_the_policy_is_an_answer_that_says_so(is_async: bool) -> None:
    session = Session()
    files = InMemoryFilesystem(session)

    def note(path: str) -> str:
        """Write a note."""
        files.write("/good", "")
        files.write(path, "")
        return "noted"

    def check(call: Any, result: Any, context: Any) -> str | None:
        return "secrets stay" if files.exists("/secret") else None

    toolset = Toolset(session, files, policy=Policy(on_result=check))
    turn = [("note", {"path": "/secret"})], [("write_file", {"path": "/secret", "content": ""})]
    agent = Agent(toolset, *turn, [], tools=[note], is_async=is_async)
    foreign, own = agent.ask()
    assert (foreign.status, own.status) == ("error", "error")
    assert foreign.content.startswith("The changes that the tool made were undone: ")
    assert "secrets stay" in foreign.content
    assert "secrets stay" in own.content
    assert agent.shown() == {}


@pytest.mark.parametrize("mounted_at", [None, "/workspace"])
@pytest.mark.parametrize("bounds", ["policy", "roots", "operations", "size", "count"])
def test_what_a_tool_may_not_do_is_undone_in_memory_too(bounds: str, mounted_at: str | None, is_async: bool) -> None:
    session = Session()
    own = InMemoryFilesystem(session)
    files, at = (own, "") if mounted_at is None else (MountedFilesystem(own, mounted_at), mounted_at)
    own.write("/kept/a", "before")
    rule = PolicyRule(effect="deny", operations=["write"], paths=f"{at}/kept", reason="a rule")
    given: dict[str, Any] = {
        "policy": {"policy": Policy([rule])},
        "roots": {"capability": Capability(fs_roots=[f"{at}/src"])},
        "operations": {"capability": Capability(allowed_fs_ops=["read"])},
        "size": {"capability": Capability(max_write_bytes=3)},
        "count": {"capability": Capability(max_changed_files=1)},
    }

    def note(path: str) -> str:
        """Write a note, though it knows nothing of the rules."""
        own.write(path, "after")
        own.move(path, f"{path}.new")
        return "noted"

    toolset = Toolset(session, files, **given[bounds])
    turns = [("note", {"path": "/kept/a"})], [("note", {"path": "/src/b"})]
    agent = Agent(toolset, *turns, [], tools=[note], is_async=is_async)
    refused, allowed = agent.ask()
    assert refused.status == "error"
    assert refused.content.startswith("The changes that the tool made were undone: ")
    assert own.read("/kept/a").content == "before"
    assert not own.exists("/kept/a.new")
    # The others bound all files alike.
    assert (allowed.status == "success") is (bounds in ("policy", "roots"))
    assert own.exists("/src/b.new") is (bounds in ("policy", "roots"))


def test_a_command_returned_by_a_tool_is_kept_and_gets_the_position(toolset: Toolset, is_async: bool) -> None:
    from langchain.tools import ToolRuntime
    from langchain_core.messages import ToolMessage
    from langgraph.types import Command

    def remember(text: str, runtime: ToolRuntime) -> Command[Any]:
        """Write a note, and remember it."""
        toolset.filesystem.write("/a", text)
        return Command(update={"messages": [ToolMessage(f"remembered {text}", tool_call_id=runtime.tool_call_id)]})

    remember.__annotations__.update({"runtime": ToolRuntime, "text": str, "return": Command})
    agent = Agent(toolset, [("remember", {"text": "it"})], [], tools=[remember], is_async=is_async)
    (answer,) = agent.ask()
    assert answer.content == "remembered it"
    assert agent.graph.get_state(agent.config).values["weakfs_position"]["record"] == agent.session.seq


def test_tools_that_are_not_named_are_left_alone(toolset: Toolset, note: Note) -> None:
    def search(text: str) -> str:
        """Search the web."""
        return f"found {text}"

    turn = [("search", {"text": "x"}), ("note", {"path": "/a", "text": "one"})]
    agent = Agent(toolset, turn, [], tools=[note, search], only=["note"])
    agent.ask()
    assert [call.tool for call in agent.session[ToolCall].all()] == ["note"]


def test_a_retried_call_starts_without_the_changes_of_the_first_attempt(toolset: Toolset, is_async: bool) -> None:
    from langchain.agents.middleware import ToolRetryMiddleware

    tries: list[bool] = []

    def append(text: str) -> str:
        """Append to a file, and fail the first time."""
        fs = toolset.filesystem
        before = fs.read("/a").content if fs.exists("/a") else ""
        fs.write("/a", before + text)
        tries.append(True)
        if len(tries) == 1:
            raise ConnectionError("try again")
        return "appended"

    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    agent = Agent(toolset, [("append", {"text": "x"})], [], tools=[append], is_async=is_async, middleware=[retry])
    (answer,) = agent.ask()
    assert (answer.content, agent.shown()) == ("appended", {"/a": "x"})


def test_an_agent_inside_a_tool_is_part_of_its_call(toolset: Toolset, note: Note, is_async: bool) -> None:
    from langchain.agents import create_agent

    from tests.integrations.langchain_agent.conftest import scripted_model
    from weakfs.integrations.langchain import SessionMiddleware, structured_tools

    middleware = SessionMiddleware(toolset)
    turns = [
        [("write_file", {"path": "/in", "content": "in"}), ("note", {"path": "/noted", "text": "one"})],
        [("note", {"path": "/b", "text": "two"})],
        [],
    ]
    helper: Any = create_agent(scripted_model(*turns), [*structured_tools(toolset), note], middleware=[middleware])

    def delegate(task: str) -> str:
        """Let a helper do it."""
        helper.invoke({"messages": [("user", task)]})
        if task == "fail":
            raise ValueError("the helper left")
        return "done"

    async def adelegate(task: str) -> str:
        await helper.ainvoke({"messages": [("user", task)]})
        raise ValueError("the helper left")

    from langchain_core.tools import StructuredTool

    tool = StructuredTool.from_function(delegate, adelegate)
    agent = Agent(toolset, [("delegate", {"task": "fail"})], tools=[tool], is_async=is_async)
    with pytest.raises(ValueError, match="the helper left"):
        agent.ask()
    assert agent.shown() == {}
