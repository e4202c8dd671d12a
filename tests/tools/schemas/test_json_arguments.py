"""Arguments as JSON text, as a model's API hands them over, and the time that a call may take."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import count

import pytest
from attrs import frozen

from weakfs import Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.tools import ToolCalls
from weakfs.tools.handlers import ExistsReceipt, ReadFileReceipt


def toolset() -> Toolset:
    made = Toolset(Session(session_id="s", clock=count(1).__next__))
    made.filesystem.write("/a", "text\n")
    return made


@pytest.mark.parametrize(
    "arguments", ['{"path": "/a"}', b'{"path": "/a"}', b'\xef\xbb\xbf{"path": "/a"}', ' {"path":"a"}\n']
)
def test_arguments_may_be_json_text(arguments: str | bytes) -> None:
    tools = toolset()

    assert tools.call("exists", arguments).message == "/a exists (file)"
    assert asyncio.run(tools.acall("exists", arguments)).message == "/a exists (file)"
    first, _ = tools.session[ToolCalls].all()
    assert first.read_arguments() == json.loads(arguments)


@pytest.mark.parametrize("arguments", ["", "  \n", "{}", b""])
def test_empty_text_means_no_arguments(arguments: str | bytes) -> None:
    assert toolset().call("ls", arguments).message == "a"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"path": "/a"', "Expecting ',' delimiter at line 1, column 14"),
        ('{"path":\n "/a" "x"}', "Expecting ',' delimiter at line 2, column 7"),
        ('{"path": "a\nb"}', "Invalid control character at line 1, column 12"),
        (b'{"path": "\xff"}', "byte 10 is not UTF-8"),
        ('{"path": "/a", "path": "/b"}', "'path' is given 2 times"),
        ('{"limit": NaN, "path": "/a"}', "NaN is not a JSON number"),
        ('{"path": ' + "[" * 100_000, "it is nested too deeply"),
        ('{"limit": ' + "9" * 5000 + "}", "Exceeds the limit"),
    ],
    ids=["cut off", "second line", "line break", "not UTF-8", "twice", "NaN", "deep", "digits"],
)
def test_text_that_is_not_json_is_answered_and_recorded(arguments: str | bytes, problem: str) -> None:
    tools = toolset()

    result = tools.call("read_file", arguments)

    assert (result.success, result.status, result.error_code) == (False, "error", "invalid_arguments")
    assert result.message.startswith("cannot call read_file: arguments: not valid JSON: ")
    assert problem in result.message
    assert 'send one JSON object with the arguments by name, such as {"path": "/a.txt"}' in result.message
    (call,) = tools.session[ToolCalls].all()
    sent = arguments if isinstance(arguments, str) else arguments.decode(errors="replace")
    assert (call.error_code, call.read_arguments()) == ("invalid_arguments", sent)


@pytest.mark.parametrize("arguments", ["[]", "5", "null", '"/a"'])
def test_json_text_that_is_not_an_object_is_answered(arguments: str) -> None:
    result = toolset().call("read_file", arguments)

    assert result.error_code == "invalid_arguments"
    assert result.message.startswith("cannot call read_file: arguments: expected an object, got ")


def test_an_unknown_tool_is_reported_before_errors_in_its_arguments() -> None:
    assert toolset().call("read_fil", "{").error_code == "unknown_tool"


def test_a_value_is_read_according_to_its_type() -> None:
    tools = toolset()

    assert tools.call("read_file", {"path": "/a"}).value_as(ReadFileReceipt).total_lines == 1
    assert tools.call("read_file", {"path": "/none"}).value_as(ReadFileReceipt).error_code == "not_found"
    with pytest.raises(TypeError, match="cannot read the value as a ExistsReceipt: it is a ReadFileReceipt"):
        tools.call("read_file", {"path": "/a"}).value_as(ExistsReceipt)


# Time


@frozen
class Nothing:
    pass


def told_of(seen: list[int | None], work: Callable[[ToolContext], None] = lambda context: None) -> Tool:
    def run(params: Nothing, *, context: ToolContext) -> ToolResult[object]:
        seen.append(context.deadline)
        work(context)
        return ToolResult("done", None)

    return Tool("probe", "For tests.", Nothing, run)


def test_a_timeout_is_a_deadline_on_the_clock_of_the_session() -> None:
    seen: list[int | None] = []
    tools = Toolset(Session(clock=lambda: 5_000), tools=[told_of(seen)])

    tools.call("probe", {}, timeout=2)
    tools.call("probe", {}, timeout=0.5, deadline=9_000)
    tools.call("probe", {}, timeout=0.5, deadline=9_000_000_000_000)
    tools.call("probe", {}, timeout=float("inf"))
    asyncio.run(tools.acall("probe", {}, timeout=1))

    assert seen == [2_000_005_000, 9_000, 500_005_000, None, 1_000_005_000]


def test_a_call_that_takes_longer_than_its_timeout_is_undone() -> None:
    now = [0]

    def take_two_seconds(context: ToolContext) -> None:
        assert context.filesystem is not None
        context.filesystem.write("/late", "x")
        now[0] += 2 * 10**9

    tools = Toolset(Session(clock=lambda: now[0]), tools=[told_of([], take_two_seconds)])

    result = tools.call("probe", {}, timeout=1.5)

    assert result.error_code == "deadline_exceeded"
    assert result.message.startswith("the call's deadline passed 0.5 s ago and nothing was changed")
    assert not tools.filesystem.exists("/late")


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), True, "5"])
def test_an_invalid_timeout_is_refused(timeout: float) -> None:
    with pytest.raises(ValueError, match="give a number of seconds above 0, or leave it out"):
        toolset().call("ls", {}, timeout=timeout)
