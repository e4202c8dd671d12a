"""The calls of pydantic-ai's agents: their arguments, answers and tools."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, BinaryContent, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from tests.integrations.pydantic_ai_agent.conftest import agent, returns, scripted, write
from weakfs import DEFAULT_TOOLS, InMemoryFilesystem, Session, Toolset
from weakfs.integrations.pydantic_ai import SessionToolset
from weakfs.tools import ToolCall


def test_a_failed_call_is_an_answer_and_the_run_continues(
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


def test_a_model_that_repeats_its_mistakes_ends_only_its_run(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    wrong = [("write_file", {"path": 3})]
    with pytest.raises(UnexpectedModelBehavior):
        agent(scripted([write("/a", "")], *([wrong] * 9)), tools).run_sync("go")
    assert not files.exists("/a")


def test_unknown_tools_are_refused(tools: SessionToolset[object]) -> None:
    result = agent(scripted([("write_files", {})]), tools).run_sync("go")
    assert "write_files" in str(result.all_messages()[2])


def test_pictures_are_sent_as_binary_content(files: InMemoryFilesystem, tools: SessionToolset[object]) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(20)
    files.write_bytes("/p.png", picture)
    result = agent(scripted([("read_file", {"path": "/p.png"})]), tools).run_sync("go")

    content = returns(result.all_messages())[0].content
    assert isinstance(content, list)
    assert content[1] == BinaryContent(picture, media_type="image/png")


def test_a_call_can_be_reverted_by_its_id(
    session: Session, files: InMemoryFilesystem, tools: SessionToolset[object]
) -> None:
    result = agent(scripted([write("/a", "1\n"), write("/b", "1\n")]), tools).run_sync("go")

    found = {part.metadata["receipt"].path: part.metadata["call_id"] for part in returns(result.all_messages())}
    session.revert(found["/a"])
    assert (files.exists("/a"), files.exists("/b")) == (False, True)
    assert {call.caller for call in session[ToolCall].all()} == {"helper"}


def test_every_tool_accepts_the_arguments_of_the_test_model(session: Session) -> None:
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


def test_wrapped_toolsets_work_too(files: InMemoryFilesystem, tools: SessionToolset[object]) -> None:
    prefixed = tools.filtered(lambda ctx, tool: tool.name == "write_file").prefixed("fs")
    run = Agent(scripted([("fs_write_file", {"path": "/a", "content": "1\n"})]), toolsets=[prefixed], deps_type=object)
    run.run_sync("go")
    assert files.exists("/a")
