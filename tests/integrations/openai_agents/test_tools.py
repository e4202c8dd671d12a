"""The tools of a session in the OpenAI Agents SDK, with its own runner and a model that follows a script."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from weakfs import DEFAULT_TOOLS, InMemoryFilesystem, Session, Toolset
from weakfs.processes import Bubblewrap
from weakfs.tools import ToolCall
from weakfs.tools.handlers import ShellOptions, shell_tool

pytestmark = pytest.mark.usefixtures("never_hung")

needs_sandbox = pytest.mark.skipif(Bubblewrap().problem() is not None, reason="there is no sandbox")


@pytest.fixture
def toolset() -> Toolset:
    from agents import set_tracing_disabled

    set_tracing_disabled(True)
    return Toolset(Session())


def run(toolset: Toolset, *calls: tuple[str, dict[str, Any]], more: tuple[Any, ...] = ()) -> list[Any]:
    """Let an agent make the calls, one after the other; return the outputs of its tools."""
    from agents import Agent, Runner
    from agents.testing import ScriptedModel, assistant_message, function_call

    from weakfs.integrations.openai_agents import function_tools

    steps: list[Any] = [
        [function_call(name, arguments, call_id=f"call-{number}")] for number, (name, arguments) in enumerate(calls)
    ]
    model = ScriptedModel([*steps, [assistant_message("done")]])
    agent = Agent(name="coder", model=model, tools=[*function_tools(toolset), *more])
    result = asyncio.run(Runner.run(agent, "go"))
    model.assert_complete()
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


def edit(toolset: Toolset, kind: Any, path: str, diff: str | None = None, move_to: str | None = None) -> Any:
    from agents import ApplyPatchOperation

    from weakfs.integrations.openai_agents import SessionEditor

    operation = ApplyPatchOperation(type=kind, path=path, diff=diff, move_to=move_to)
    return asyncio.run(getattr(SessionEditor(toolset, caller="editor"), kind)(operation))


def shell(toolset: Toolset, *commands: str, timeout_ms: int | None = None) -> list[Any]:
    from agents import RunContextWrapper, ShellActionRequest, ShellCallData, ShellCommandRequest

    from weakfs.integrations.openai_agents import SessionShell

    action = ShellActionRequest(commands=list(commands), timeout_ms=timeout_ms)
    request = ShellCommandRequest(RunContextWrapper(None), ShellCallData(call_id="call", action=action))
    return asyncio.run(SessionShell(toolset)(request)).output


def files(toolset: Toolset) -> dict[str, str]:
    found = InMemoryFilesystem(toolset.session)
    return {one.path: found.read(one.path).content for one in found.walk("/") if one.is_file}


def test_calls_of_an_agent_are_recorded_and_undone(toolset: Toolset) -> None:
    patch = "*** Begin Patch\n*** Update File: /a.py\n@@\n-port = 80\n+port = 8080\n*** End Patch"
    answers = run(
        toolset,
        ("write_file", {"path": "/a.py", "content": "port = 80\n"}),
        ("apply_patch", {"patch": patch}),
        ("read_file", {"path": "/none"}),
        ("write_file", {"path": 7}),
    )
    assert files(toolset) == {"/a.py": "port = 8080\n"}
    assert "there is no such entry" in answers[2]
    assert "content" in answers[3]
    made = toolset.session[ToolCall].all()
    assert [call.tool for call in made][:3] == ["write_file", "apply_patch", "read_file"]
    assert {call.caller for call in made} == {"coder"}
    # The next run may have the same ids.
    run(toolset, ("write_file", {"path": "/b.py", "content": ""}))
    assert len({call.call_id for call in toolset.session[ToolCall].all()}) == len(made) + 1
    toolset.session.undo()
    toolset.session.undo()
    assert files(toolset) == {"/a.py": "port = 80\n"}


def test_every_tool_has_a_schema_that_the_sdk_takes(toolset: Toolset) -> None:
    from agents import FunctionTool
    from agents.strict_schema import ensure_strict_json_schema

    from weakfs.integrations.openai_agents import function_tools

    tools = function_tools(toolset)
    assert {tool.name for tool in tools} >= {"read_file", "write_file", "apply_patch", "shell"}
    for tool in tools:
        assert isinstance(tool, FunctionTool)
        if tool.strict_json_schema:
            assert ensure_strict_json_schema(dict(tool.params_json_schema)) == tool.params_json_schema


def test_pictures_are_sent_as_images(toolset: Toolset) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(20)
    InMemoryFilesystem(toolset.session).write_bytes("/a.png", png)
    (answer,) = run(toolset, ("read_file", {"path": "/a.png"}))
    assert base64.b64decode(answer[1].image_url.partition(",")[2]) == png


def test_the_editor_creates_updates_moves_and_deletes(toolset: Toolset) -> None:
    assert edit(toolset, "create_file", "a.py", "+one\n+two\n").status == "completed"
    assert edit(toolset, "update_file", "a.py", "@@\n one\n-two\n+2\n", "b.py").status == "completed"
    assert files(toolset) == {"/b.py": "one\n2\n"}
    assert edit(toolset, "delete_file", "b.py").status == "completed"
    assert files(toolset) == {}
    for expected in ({"/b.py": "one\n2\n"}, {"/a.py": "one\ntwo\n"}, {}):
        toolset.session.undo()
        assert files(toolset) == expected
    assert {call.caller for call in toolset.session[ToolCall].all()} == {"editor"}


@pytest.mark.parametrize(
    ("kind", "path", "diff"),
    [
        ("update_file", "a.py", "@@\n-nothing like it\n+x\n"),
        ("update_file", "none.py", "@@\n-x\n+y\n"),
        ("delete_file", "none.py", None),
        ("create_file", "../outside", "+x\n"),
        ("create_file", "x", "no plus sign\n"),
        # Operations on other files, in the diff or in a path.
        ("update_file", "a.py", "@@\n-one\n+1\n*** Delete File: secret\n"),
        ("update_file", "a.py", "@@\n-one\n+1\n*** End Patch\n*** Begin Patch\n*** Delete File: secret\n"),
        ("create_file", "x\n*** Delete File: secret", "+x\n"),
        ("delete_file", "a.py\n*** Delete File: secret", None),
    ],
)
def test_an_operation_that_fails_changes_nothing(toolset: Toolset, kind: str, path: str, diff: str | None) -> None:
    memory = InMemoryFilesystem(toolset.session)
    memory.write("/a.py", "one\n")
    memory.write("/secret", "s\n")
    done = edit(toolset, kind, path, diff)
    assert done.status == "failed"
    assert done.output
    assert files(toolset) == {"/a.py": "one\n", "/secret": "s\n"}


@needs_sandbox
def test_each_command_is_a_separate_call(toolset: Toolset) -> None:
    first, second, third = shell(toolset, "echo one > a; echo said; echo wrong >&2; exit 3", "cat a", "  ")
    assert (first.stdout, first.stderr, first.exit_code, first.status) == ("said\n", "wrong\n", 3, "completed")
    assert (second.stdout, second.exit_code) == ("one\n", 0)
    assert (third.exit_code, third.stdout) == (126, "")
    assert "it is empty" in third.stderr
    toolset.session.undo()
    assert files(toolset) == {}


@needs_sandbox
def test_a_command_that_times_out_is_undone_and_the_rest_is_not_run(toolset: Toolset) -> None:
    InMemoryFilesystem(toolset.session).write("/a", "one\n")
    (timed_out,) = shell(toolset, "rm a; sleep 60", "echo > b", timeout_ms=500)
    assert (timed_out.status, timed_out.exit_code) == ("timeout", None)
    assert "undone" in timed_out.stderr
    assert files(toolset) == {"/a": "one\n"}


def test_a_toolset_without_the_tool_is_refused(toolset: Toolset) -> None:
    from weakfs.integrations.openai_agents import SessionEditor, SessionShell

    few = Toolset(Session(), tools=[tool for tool in DEFAULT_TOOLS if tool.name == "read_file"])
    for kind, name in ((SessionEditor, "apply_patch"), (SessionShell, "shell")):
        with pytest.raises(ValueError, match=name):
            kind(few)


def test_the_tools_of_the_sdk_accept_the_adapters() -> None:
    from agents import Agent, ApplyPatchTool, ShellTool

    from weakfs.integrations.openai_agents import SessionEditor, SessionShell

    others = [one for one in DEFAULT_TOOLS if one.name != "shell"]
    tools = Toolset(Session(), tools=[*others, shell_tool(ShellOptions())])
    agent = Agent(name="coder", tools=[ApplyPatchTool(SessionEditor(tools)), ShellTool(SessionShell(tools))])
    assert [tool.name for tool in agent.tools] == ["apply_patch", "shell"]
