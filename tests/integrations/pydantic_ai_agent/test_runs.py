"""Runs of pydantic-ai's agents over a session: forked, merged, and without a trace if they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from pydantic_ai import Agent, BinaryContent, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from weakfs import DEFAULT_TOOLS, HostFilesystem, InMemoryFilesystem, Session, Tool, Toolset
from weakfs.integrations.pydantic_ai import RunConflict, SessionToolset
from weakfs.processes import Bubblewrap
from weakfs.session import Session as AnySession
from weakfs.session import SessionClosed
from weakfs.tools import ToolCall, ToolContext, ToolResult

Calls = Iterable[tuple[str, dict[str, Any] | str]]


def scripted(*turns: Calls, answer: str = "done") -> FunctionModel:
    """Return a model that makes the calls of each turn in parallel, and then answers."""

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        made = sum(isinstance(message, ModelResponse) for message in messages)
        if made < len(turns):
            return ModelResponse(parts=[ToolCallPart(name, arguments) for name, arguments in turns[made]])
        return ModelResponse(parts=[TextPart(answer)])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        for index, part in enumerate(reply(messages, info).parts):
            if isinstance(part, ToolCallPart):
                text = part.args if isinstance(part.args, str) else json.dumps(part.args)
                yield {index: DeltaToolCall(name=part.tool_name, json_args=text, tool_call_id=part.tool_call_id)}
            elif isinstance(part, TextPart):
                yield part.content

    return FunctionModel(reply, stream_function=stream)


@frozen
class Nothing:
    """The parameters of a tool that has none."""


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def returns(messages: Iterable[ModelMessage]) -> list[ToolReturnPart]:
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


@pytest.fixture(autouse=True)
def event_loop() -> Iterator[None]:
    """Close the loop on which `run_sync` runs."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    asyncio.set_event_loop(None)


@pytest.fixture
def session() -> Session:
    return Session(session_id="main")


@pytest.fixture
def files(session: Session) -> InMemoryFilesystem:
    return InMemoryFilesystem(session)


@pytest.fixture
def tools(session: Session, files: InMemoryFilesystem) -> SessionToolset[object]:
    return SessionToolset(Toolset(session, files))


def agent(model: Any, *toolsets: SessionToolset[object]) -> Agent[object, str]:
    return Agent(model, toolsets=toolsets, name="helper", deps_type=object)


def test_a_run_that_succeeds_is_merged_and_one_undo_takes_it_back(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    result = agent(scripted([write("/a", "1\n"), write("/b", "2\n")]), tools).run_sync("go")

    assert result.output == "done"
    assert (files.read("/a").content, files.read("/b").content) == ("1\n", "2\n")
    session.undo()
    assert not files.exists("/a")
    assert not files.exists("/b")


def test_the_session_changes_only_when_the_run_ends(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    async def main() -> None:
        async with agent(scripted([write("/a", "1\n")], [write("/b", "1\n")]), tools).iter("go") as run:
            async for _ in run:
                assert not files.exists("/a")
        assert files.exists("/a")

    asyncio.run(main())


def test_a_run_that_fails_leaves_the_session_as_it_was(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    before = session.seq
    broken = agent(scripted([write("/a", "1\n")], [("fail", {})]), tools)

    @broken.tool_plain
    def fail() -> str:
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        broken.run_sync("go")

    assert session.seq == before
    assert not files.exists("/a")


def test_a_run_within_an_exception_handler_is_merged(files: InMemoryFilesystem, tools: SessionToolset[object]) -> None:
    async def main() -> None:
        try:
            raise KeyError("before")
        except KeyError:
            await agent(scripted([write("/a", "1\n")]), tools).run("go")

    asyncio.run(main())
    assert files.exists("/a")


def test_a_cancelled_run_leaves_the_session_as_it_was(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    before = session.seq

    async def main() -> None:
        reached = asyncio.Event()
        waiting = agent(scripted([write("/a", "1\n")], [("wait", {}), write("/b", "1\n")]), tools)

        @waiting.tool_plain
        async def wait() -> str:
            reached.set()
            await asyncio.Event().wait()
            return "never"

        task = asyncio.create_task(waiting.run("go"))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert session.seq == before
    assert not files.exists("/a")


def test_late_changes_of_a_run_that_failed_are_refused(session: Session) -> None:
    kept: list[AnySession] = []

    def keep(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        kept.append(context.session)
        return ToolResult("kept", None)

    own = SessionToolset[object](Toolset(session, tools=[Tool("keep", "Keep the session.", Nothing, keep)]))
    with pytest.raises(UnexpectedModelBehavior):
        agent(scripted([("keep", {})], *([[("keep", {"x": 1})]] * 9)), own).run_sync("go")
    with pytest.raises(SessionClosed, match="the run that it belongs to failed"):
        InMemoryFilesystem(kept[0]).write("/late", "")


def test_streamed_runs_are_merged(files: InMemoryFilesystem, tools: SessionToolset[object]) -> None:
    async def main() -> str:
        async with agent(scripted([write("/a", "1\n")]), tools).run_stream("go") as run:
            return "".join([text async for text in run.stream_text(delta=True)])

    assert asyncio.run(main()) == "done"
    assert files.exists("/a")


def test_a_streamed_run_whose_reader_fails_is_not_merged(
    files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    async def main() -> None:
        async with agent(scripted([write("/a", "1\n")]), tools).run_stream("go"):
            raise KeyError("the reader")

    with pytest.raises(KeyError):
        asyncio.run(main())
    assert not files.exists("/a")


def test_runs_side_by_side_are_merged(files: InMemoryFilesystem, tools: SessionToolset[object]) -> None:
    files.write("/shared", "1\n2\n3\n4\n5\n")

    def edit(old: str, new: str) -> Agent[object, str]:
        change = ("edit_file", {"path": "/shared", "old_string": old, "new_string": new})
        return agent(scripted([("read_file", {"path": "/shared"})], [change]), tools)

    async def main() -> None:
        await asyncio.gather(edit("1\n", "one\n").run("go"), edit("5\n", "five\n").run("go"))

    asyncio.run(main())
    assert files.read("/shared").content == "one\n2\n3\n4\nfive\n"


def test_a_conflict_keeps_what_the_run_did(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    files.write("/a", "0\n")
    both = agent(scripted([write("/a", "run\n")], [("meanwhile", {})], answer="I wrote it"), tools)

    @both.tool_plain
    def meanwhile() -> str:
        files.write("/a", "person\n")
        return "ok"

    with pytest.raises(RunConflict, match="/a") as caught:
        both.run_sync("go")

    assert files.read("/a").content == "person\n"
    assert caught.value.messages[-1].parts[0] == TextPart("I wrote it")
    assert isinstance(caught.value.fork, Session)
    session.merge(caught.value.fork, on_conflict="theirs")
    assert files.read("/a").content == "run\n"


def test_conflicts_are_resolved_as_asked(session: Session, files: InMemoryFilesystem) -> None:
    files.write("/a", "0\n")
    tools: SessionToolset[object] = SessionToolset(Toolset(session, files), on_conflict="theirs")
    both = agent(scripted([write("/a", "run\n")], [("meanwhile", {})]), tools)

    @both.tool_plain
    def meanwhile() -> str:
        files.write("/a", "person\n")
        return "ok"

    both.run_sync("go")
    assert files.read("/a").content == "run\n"


@pytest.mark.parametrize("fails", [False, True])
def test_a_nested_run_sees_and_extends_the_run_around_it(
    files: InMemoryFilesystem, tools: SessionToolset[object], fails: bool
) -> None:
    inner = agent(scripted([("edit_file", {"path": "/a", "old_string": "1", "new_string": "2"})], [("end", {})]), tools)
    outer = agent(scripted([write("/a", "1\n")], [("ask", {})], [("read_file", {"path": "/a"})]), tools)

    @inner.tool_plain
    def end() -> str:
        if fails:
            raise ZeroDivisionError
        return "ok"

    @outer.tool_plain
    async def ask() -> str:
        try:
            return (await inner.run("go")).output
        except ZeroDivisionError:
            return "it failed"

    result = outer.run_sync("go")

    expected = "1\n" if fails else "2\n"
    assert expected in str(returns(result.all_messages())[-1].content)
    assert files.read("/a").content == expected


def test_a_call_that_fails_is_an_answer_and_the_run_goes_on(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    missing = [("read_file", {"path": "/no"})]
    result = agent(scripted(*([missing] * 6), [write("/a", "1\n")]), tools).run_sync("go")

    parts = returns(result.all_messages())
    assert [part.outcome for part in parts] == ["failed"] * 6 + ["success"]
    assert "/no" in str(parts[0].content)
    assert [call.status for call in session[ToolCall].all()] == ["not_found"] * 6 + ["ok"]


def test_wrong_arguments_are_sent_back_with_every_problem(tools: SessionToolset[object]) -> None:
    wrong = [("write_file", {"path": 3, "contents": "x"})]
    model = scripted(wrong, [("write_file", '{"path": "/a", ')], [write("/a", "1\n")])
    result = agent(model, tools).run_sync("go")

    text = str(result.all_messages())
    assert "path: expected text, got number 3" in text
    assert "contents: no such argument; did you mean content?" in text
    assert "not valid JSON" in text


def test_a_model_that_never_learns_ends_its_run_only(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    wrong = [("write_file", {"path": 3})]
    with pytest.raises(UnexpectedModelBehavior):
        agent(scripted([write("/a", "")], *([wrong] * 9)), tools).run_sync("go")
    assert not files.exists("/a")


def test_unknown_tools_are_refused(tools: SessionToolset[object]) -> None:
    result = agent(scripted([("write_files", {})]), tools).run_sync("go")
    assert "write_files" in str(result.all_messages()[2])


def test_pictures_are_shown(files: InMemoryFilesystem, tools: SessionToolset[object]) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(20)
    files.write_bytes("/p.png", picture)
    result = agent(scripted([("read_file", {"path": "/p.png"})]), tools).run_sync("go")

    content = returns(result.all_messages())[0].content
    assert isinstance(content, list)
    assert content[1] == BinaryContent(picture, media_type="image/png")


def test_the_id_of_a_call_takes_it_back(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    result = agent(scripted([write("/a", "1\n"), write("/b", "1\n")]), tools).run_sync("go")

    found = {part.metadata["receipt"].path: part.metadata["call_id"] for part in returns(result.all_messages())}
    session.revert(found["/a"])
    assert (files.exists("/a"), files.exists("/b")) == (False, True)
    assert {call.caller for call in session[ToolCall].all()} == {"helper"}


def test_every_tool_takes_what_the_test_model_sends(session: Session) -> None:
    without_commands = [tool for tool in DEFAULT_TOOLS if tool.name != "shell"]
    model = TestModel()
    result = agent(model, SessionToolset(Toolset(session, tools=without_commands))).run_sync("go")

    offered = model.last_model_request_parameters
    assert offered is not None
    assert {part.tool_name for part in returns(result.all_messages())} == {one.name for one in offered.function_tools}


@pytest.mark.parametrize(
    ("system", "editor", "argument"),
    [
        ("openai", "apply_patch", "file_path"),
        ("anthropic", "edit_file", "file_path"),
        ("google", "edit_file", "file_path"),
    ],
)
def test_models_get_the_tools_that_they_know(
    session: Session, monkeypatch: pytest.MonkeyPatch, system: str, editor: str, argument: str
) -> None:
    model = TestModel(call_tools=[])
    monkeypatch.setattr(TestModel, "system", property(lambda self: system))
    agent(model, SessionToolset(Toolset(session))).run_sync("go")

    assert model.last_model_request_parameters is not None
    offered = {one.name: one for one in model.last_model_request_parameters.function_tools}
    assert len(offered.keys() & {"edit_file", "apply_patch"}) == 1
    assert editor in offered
    assert argument in offered["read_file"].parameters_json_schema["properties"]


def test_tools_are_the_same_at_every_step(session: Session) -> None:
    seen: list[list[Any]] = []

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info.function_tools)
        parts = [ToolCallPart(*write("/a", str(len(seen))))] if len(seen) < 4 else [TextPart("done")]
        return ModelResponse(parts=parts)

    agent(FunctionModel(reply), SessionToolset(Toolset(session))).run_sync("go")
    assert seen[0] == seen[1] == seen[2] == seen[3]
    assert [one.name for one in seen[0] if one.sequential] == ["shell"]


def test_a_wrapped_toolset_works_as_well(files: InMemoryFilesystem, tools: SessionToolset[object]) -> None:
    prefixed = tools.filtered(lambda ctx, tool: tool.name == "write_file").prefixed("fs")
    run = Agent(scripted([("fs_write_file", {"path": "/a", "content": "1\n"})]), toolsets=[prefixed], deps_type=object)
    run.run_sync("go")
    assert files.exists("/a")


# Files outside the session


def on_the_host(tmp_path: Path) -> tuple[Session, SessionToolset[object]]:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/kept").write_text("kept\n")
    session = Session(session_id="main")
    return session, SessionToolset(
        Toolset(session, HostFilesystem(tmp_path / "root", session=session, store=tmp_path / "store"))
    )


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_on_the_host_is_reverted_if_it_fails(tmp_path: Path, fails: bool) -> None:
    _, tools = on_the_host(tmp_path)
    root = tmp_path / "root"
    calls = [write("/a", "1\n"), ("rm", {"path": "/kept"})]
    run = agent(scripted(calls, [write("/a", "2\n")], [("person", {})], [("end", {})]), tools)

    @run.tool_plain
    def person() -> str:
        (root / "mine").write_text("mine\n")
        return "ok"

    @run.tool_plain
    def end() -> str:
        if fails:
            raise ZeroDivisionError
        return "ok"

    if fails:
        with pytest.raises(ZeroDivisionError):
            run.run_sync("go")
    else:
        run.run_sync("go")

    found = {path.name: path.read_text() for path in root.iterdir()}
    assert found == ({"kept": "kept\n", "mine": "mine\n"} if fails else {"a": "2\n", "mine": "mine\n"})


@pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")
def test_a_run_on_the_host_that_is_cancelled_in_a_command_is_reverted(tmp_path: Path) -> None:
    _, tools = on_the_host(tmp_path)
    root = tmp_path / "root"
    command = ("shell", {"command": "touch begun; sleep 60"})

    async def work() -> None:
        run = asyncio.create_task(agent(scripted([write("/a", "1\n")], [command]), tools).run("go"))
        while not (root / "begun").exists():
            assert not run.done(), run.exception()
            await asyncio.sleep(0.01)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    asyncio.run(work())
    assert {path.name: path.read_text() for path in root.iterdir()} == {"kept": "kept\n"}


def test_a_nested_run_on_the_host_is_reverted_with_the_run_around_it(tmp_path: Path) -> None:
    _, tools = on_the_host(tmp_path)
    inner = agent(scripted([write("/b", "1\n")]), tools)
    outer = agent(scripted([write("/a", "1\n")], [("ask", {})], [("end", {})]), tools)

    @outer.tool_plain
    async def ask() -> str:
        return (await inner.run("go")).output

    @outer.tool_plain
    def end() -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        outer.run_sync("go")
    assert [path.name for path in (tmp_path / "root").iterdir()] == ["kept"]


# Sessions in storage


def test_a_session_in_storage_gets_the_run_as_a_whole(tmp_path: Path) -> None:
    with Session.open(tmp_path / "sessions", "chat") as session:
        agent(scripted([write("/a", "1\n")], [write("/a", "2\n")]), SessionToolset(Toolset(session))).run_sync("go")
    with Session.open(tmp_path / "sessions", "chat") as session:
        assert InMemoryFilesystem(session).read("/a").content == "2\n"


def test_a_session_whose_commits_are_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        async with await Session.aopen(tmp_path / "sessions", "chat") as session:
            await agent(scripted([write("/a", "1\n")]), SessionToolset(Toolset(session))).run("go")
            assert InMemoryFilesystem(session).exists("/a")

    asyncio.run(main())
    with Session.open(tmp_path / "sessions", "chat") as session:
        assert InMemoryFilesystem(session).exists("/a")
