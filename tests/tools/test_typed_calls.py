"""Calls with a tool object in place of its name: type checkers know the type of the result, and it is right."""

from __future__ import annotations

import asyncio
from typing import assert_type

import pytest
from attrs import evolve, frozen

from weakfs import DEFAULT_TOOLS, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.tools import EDIT_FILE, READ_FILE, WRITE_FILE, Receipt, ToolCalls, handlers
from weakfs.tools.handlers import EditFileReceipt, ReadFileReceipt, shell_tool


@frozen
class Nothing:
    pass


@frozen(kw_only=True)
class CountReceipt(Receipt):
    count: int | None = None


def count(params: Nothing, *, context: ToolContext) -> ToolResult[CountReceipt]:
    return ToolResult("3 things", CountReceipt(count=3))


def count_wrongly(params: Nothing, *, context: ToolContext) -> ToolResult[int]:
    return ToolResult("3 things", 3)


COUNT = Tool("count", "Count.", Nothing, count, receipt=CountReceipt)
PLAIN = Tool("plain", "Count.", Nothing, count_wrongly)


@pytest.fixture
def toolset() -> Toolset:
    return Toolset(Session(session_id="s"), tools=[*DEFAULT_TOOLS, COUNT, PLAIN])


def test_a_call_of_a_built_in_tool_has_its_receipt(toolset: Toolset) -> None:
    toolset.call(WRITE_FILE, {"path": "/a", "content": "one"})
    read = assert_type(toolset.call(READ_FILE, {"path": "/a"}), ToolResult[ReadFileReceipt])
    assert read.value.total_lines == 1
    assert [call.tool for call in toolset.session[ToolCalls].all()] == ["write_file", "read_file"]


def test_a_call_that_fails_has_its_receipt_too(toolset: Toolset) -> None:
    edited = assert_type(toolset.call(EDIT_FILE, '{"path": "/none"}'), ToolResult[EditFileReceipt])
    assert (edited.value.status, isinstance(edited.value, EditFileReceipt)) == ("error", True)


def test_an_awaited_call_has_its_receipt(toolset: Toolset) -> None:
    async def main() -> ToolResult[CountReceipt]:
        assert_type(await asyncio.to_thread(toolset.call, "plain", {}), ToolResult[object])
        return assert_type(await toolset.acall(COUNT, {}, timeout=60), ToolResult[CountReceipt])

    assert asyncio.run(main()).value.count == 3


def test_the_value_of_a_call_by_name_or_without_a_receipt_is_untyped(toolset: Toolset) -> None:
    assert_type(toolset.call("count", {}), ToolResult[object])
    plain = assert_type(toolset.call(PLAIN, {}), ToolResult[object])
    assert plain.value == 3


def test_every_built_in_tool_is_one_of_the_default_tools() -> None:
    import weakfs.tools

    tools = [getattr(weakfs.tools, tool.name.upper()) for tool in DEFAULT_TOOLS]
    assert all(named is tool for named, tool in zip(tools, DEFAULT_TOOLS, strict=True))


@pytest.mark.parametrize("tool", DEFAULT_TOOLS, ids=lambda tool: tool.name)
def test_every_built_in_tool_has_the_type_of_its_receipt(tool: Tool) -> None:
    from weakfs.tools import defaults

    declared = defaults.__annotations__[tool.name.upper()]
    assert declared == f"Tool[handlers.{tool.receipt.__name__}]"
    assert getattr(handlers, tool.receipt.__name__) is tool.receipt


def test_a_tool_object_outside_the_toolset_is_refused_and_recorded(toolset: Toolset) -> None:
    other = Tool("counts", "Count.", Nothing, count, receipt=CountReceipt)
    refused = toolset.call(other, {})
    assert (refused.success, refused.error_code, type(refused.value)) == (False, "unknown_tool", CountReceipt)
    assert refused.message.startswith("there is no tool 'counts'; did you mean count? use one of ls, ")
    assert [(call.tool, call.status) for call in toolset.session[ToolCalls].all()] == [("counts", "error")]


@pytest.mark.parametrize("other", [evolve(COUNT), shell_tool()], ids=["copy", "options"])
def test_another_tool_of_the_same_name_is_refused(toolset: Toolset, other: Tool) -> None:
    refused = toolset.call(other, {"command": "true"})
    assert refused.message == f"this toolset has another tool named {other.name!r}; call it by its name"
    assert refused.error_code == "unknown_tool"


def test_a_handler_that_returns_something_other_than_its_receipt_changes_nothing() -> None:
    def write(params: Nothing, *, context: ToolContext) -> ToolResult[int]:
        assert context.filesystem is not None
        context.filesystem.write("/a", "text")
        return ToolResult("done", 1)

    toolset = Toolset(Session(session_id="s"), tools=[Tool("write", "Write.", Nothing, write, receipt=CountReceipt)])
    with pytest.raises(TypeError, match="returned an int as the value of its result; return a CountReceipt, which"):
        toolset.call("write", {})
    assert not toolset.filesystem.exists("/a")
    assert [call.status for call in toolset.session[ToolCalls].all()] == ["error"]


def test_a_receipt_class_must_be_a_subclass_of_receipt() -> None:
    with pytest.raises(TypeError, match="its receipt is <class 'int'>; give a subclass of Receipt"):
        Tool("count", "Count.", Nothing, count, receipt=int)
