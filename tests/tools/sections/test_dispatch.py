"""From a tool's name to its answer, through the section that provides it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from weakfs import Session, Tool, ToolContext, ToolResult
from weakfs.tools import ToolCalls, require_filesystem
from weakfs.tools.sections import (
    FILESYSTEM_TOOLS,
    Prompt,
    Section,
    VfsSection,
    WorkspaceSection,
    adispatch_tool_call,
    dispatch_tool_call,
)


# A complete custom tool.
@frozen
class CountLines:
    path: str


def count_lines(params: CountLines, *, context: ToolContext) -> ToolResult[int]:
    found = require_filesystem(context).read(params.path).total_lines
    return ToolResult(f"{params.path} has {found} lines", found)


COUNT = Tool("count_lines", "Count the lines of a text file.", CountLines, count_lines, read_only=True)


@frozen
class Nothing:
    pass


def only(*names: str) -> list[Tool]:
    return [tool for tool in FILESYSTEM_TOOLS if tool.name in names]


@pytest.fixture
def session() -> Session:
    return Session(session_id="s")


def test_a_call_works_on_the_files_of_the_section_that_provides_the_tool(session: Session, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    memory = VfsSection(session=session, tools=only("write_file"))
    host = WorkspaceSection(
        session=session, root=tmp_path / "root", store=tmp_path / "store", tools=only("rm", "exists")
    )
    prompt = Prompt(sections=[memory, host])
    (tmp_path / "root" / "a").write_text("on the host")

    assert dispatch_tool_call(prompt, "write_file", {"path": "/a", "content": "in memory"}, session=session).success
    assert dispatch_tool_call(prompt, "rm", {"path": "/a"}, session=session).success

    assert memory.filesystem.read("/a").content == "in memory"
    assert not (tmp_path / "root" / "a").exists()
    assert dispatch_tool_call(prompt, "exists", {"path": "/a"}, session=session).summary_text == "/a does not exist"


def test_a_custom_tool_in_a_plain_section_works_on_the_prompts_files(session: Session) -> None:
    section = Section(title="Counting", key="counting", template="Count.", tools=[COUNT])
    prompt = Prompt(sections=[section, VfsSection(session=session)])

    dispatch_tool_call(prompt, "write_file", {"path": "/a", "content": "1\n2\n"}, session=session)
    result = dispatch_tool_call(prompt, "count_lines", {"path": "/a"}, session=session)

    assert (result.message, result.value) == ("/a has 2 lines", 2)


def test_without_any_filesystem_a_handler_that_needs_one_says_so(session: Session) -> None:
    prompt = Prompt(sections=[Section(title="Counting", key="counting", template="Count.", tools=[COUNT])])

    result = dispatch_tool_call(prompt, "count_lines", {"path": "/a"}, session=session)

    assert (result.success, result.status, result.error_code) == (False, "error", "invalid_arguments")
    assert "there is no filesystem in this context" in result.message


def test_a_handler_finds_values_of_the_runtime_in_its_context(session: Session) -> None:
    seen: list[ToolContext] = []

    def look(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        seen.append(context)
        return ToolResult("seen", None)

    tool = Tool("look", "Look.", Nothing, look)
    section = VfsSection(session=session, tools=[tool])
    prompt = Prompt(sections=[section])
    adapter, tracker = object(), object()

    dispatch_tool_call(
        prompt,
        "look",
        {},
        session=session,
        call_id="c1",
        caller="ann",
        adapter=adapter,
        deadline=2**62,
        budget_tracker=tracker,
    )

    (context,) = seen
    assert context.session is session
    assert (context.prompt, context.rendered_prompt) == (prompt, prompt.render())
    assert (context.adapter, context.budget_tracker, context.deadline) == (adapter, tracker, 2**62)
    assert context.filesystem is not None
    (call,) = session[ToolCalls].all()
    assert (call.call_id, call.caller, call.tool) == ("c1", "ann", "look")


def test_the_answer_for_an_unknown_tool_lists_the_tools(session: Session) -> None:
    section = Section(title="Counting", key="counting", template="Count.", tools=[COUNT])
    prompt = Prompt(sections=[section, VfsSection(session=session, tools=only("rm"))])

    result = dispatch_tool_call(prompt, "count_line", {}, session=session)

    assert (result.status, result.error_code) == ("error", "unknown_tool")
    assert result.message.endswith("did you mean count_lines? use one of count_lines, rm")
    assert [call.tool for call in session[ToolCalls].all()] == ["count_line"]
    assert dispatch_tool_call(Prompt(sections=[]), "rm", {}, session=session).error_code == "unknown_tool"
    no_name: Any = ["rm"]
    assert dispatch_tool_call(Prompt(sections=[]), no_name, {}, session=session).error_code == "unknown_tool"


def test_failed_calls_and_calls_past_their_deadline_are_rolled_back(session: Session) -> None:
    prompt = Prompt(sections=[VfsSection(session=session)])
    dispatch_tool_call(prompt, "write_file", {"path": "/a", "content": "1"}, session=session)
    before = session[ToolCalls].all()

    wrong = dispatch_tool_call(
        prompt, "edit_file", {"path": "/a", "old_string": "2", "new_string": "3"}, session=session
    )
    late = dispatch_tool_call(prompt, "write_file", {"path": "/a", "content": ""}, session=session, deadline=0)

    assert (wrong.error_code, late.error_code) == ("edit_target_not_found", "deadline_exceeded")
    assert dispatch_tool_call(prompt, "read_file", {"path": "/a"}, session=session).message == "1"
    assert len(session[ToolCalls].all()) == len(before) + 3


def test_a_session_other_than_the_sections_is_refused(session: Session, tmp_path: Path) -> None:
    prompt = Prompt(sections=[VfsSection(session=session)])

    with pytest.raises(ValueError, match="cannot use a filesystem of session 's' with session 'other'"):
        dispatch_tool_call(prompt, "ls", {}, session=Session(session_id="other"))


def test_calls_may_be_dispatched_concurrently(session: Session) -> None:
    async def read(params: CountLines, *, context: ToolContext) -> ToolResult[str]:
        await asyncio.sleep(0)
        return ToolResult(require_filesystem(context).read(params.path).content, "")

    slow = Tool("slow_read", "Read.", CountLines, read, read_only=True)
    prompt = Prompt(sections=[VfsSection(session=session, tools=[*FILESYSTEM_TOOLS, slow])])
    bare = Prompt(sections=[Section(title="Bare", key="bare", template="", tools=[slow])])

    async def work() -> list[ToolResult[object]]:
        made = await asyncio.gather(
            *(
                adispatch_tool_call(prompt, "write_file", {"path": f"/{n}", "content": str(n)}, session=session)
                for n in range(5)
            ),
            adispatch_tool_call(prompt, "rm", {"path": "/none"}, session=session),
        )
        return [
            *made,
            await adispatch_tool_call(prompt, "slow_read", {"path": "/3"}, session=session),
            await adispatch_tool_call(bare, "slow_read", {"path": "/3"}, session=session),
        ]

    results = asyncio.run(work())

    assert [result.success for result in results] == [True] * 5 + [False, True, False]
    assert results[-2].message == "3"
    assert "there is no filesystem in this context" in results[-1].message
