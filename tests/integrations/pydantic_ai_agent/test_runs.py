"""Runs of pydantic-ai's agents over a session: forked, merged, and without a trace if they fail."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic_ai import Agent, UnexpectedModelBehavior
from pydantic_ai.messages import TextPart

from tests.integrations.pydantic_ai_agent.conftest import Nothing, agent, returns, scripted, write
from weakfs import InMemoryFilesystem, Session, Tool, Toolset
from weakfs.integrations.pydantic_ai import RunConflict, SessionToolset
from weakfs.session import Session as AnySession
from weakfs.session import SessionClosed
from weakfs.tools import ToolContext, ToolResult


def test_a_successful_run_is_merged_and_undone_with_one_undo(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    result = agent(scripted([write("/a", "1\n"), write("/b", "2\n")]), tools).run_sync("go")

    assert result.output == "done"
    assert (files.read("/a").content, files.read("/b").content) == ("1\n", "2\n")
    session.undo()
    assert not files.exists("/a")
    assert not files.exists("/b")


async def test_the_session_changes_only_when_the_run_ends(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    async with agent(scripted([write("/a", "1\n")], [write("/b", "1\n")]), tools).iter("go") as run:
        async for _ in run:
            assert not files.exists("/a")
    assert files.exists("/a")


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


def test_concurrent_runs_are_merged(files: InMemoryFilesystem, tools: SessionToolset[object]) -> None:
    files.write("/shared", "1\n2\n3\n4\n5\n")

    def edit(old: str, new: str) -> Agent[object, str]:
        change = ("edit_file", {"path": "/shared", "old_string": old, "new_string": new})
        return agent(scripted([("read_file", {"path": "/shared"})], [change]), tools)

    async def main() -> None:
        await asyncio.gather(edit("1\n", "one\n").run("go"), edit("5\n", "five\n").run("go"))

    asyncio.run(main())
    assert files.read("/shared").content == "one\n2\n3\n4\nfive\n"


def test_a_conflict_keeps_the_changes_of_the_run(
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
def test_a_nested_run_sees_and_extends_the_outer_run(
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


def test_a_session_in_storage_gets_the_run_as_a_whole(tmp_path: Path) -> None:
    with Session.open(tmp_path / "sessions", "chat") as session:
        agent(scripted([write("/a", "1\n")], [write("/a", "2\n")]), SessionToolset(Toolset(session))).run_sync("go")
    with Session.open(tmp_path / "sessions", "chat") as session:
        assert InMemoryFilesystem(session).read("/a").content == "2\n"


def test_runs_work_on_a_session_whose_commits_are_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        async with await Session.aopen(tmp_path / "sessions", "chat") as session:
            await agent(scripted([write("/a", "1\n")]), SessionToolset(Toolset(session))).run("go")
            assert InMemoryFilesystem(session).exists("/a")

    asyncio.run(main())
    with Session.open(tmp_path / "sessions", "chat") as session:
        assert InMemoryFilesystem(session).exists("/a")
