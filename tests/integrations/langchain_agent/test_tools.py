"""The tools of a toolset as structured tools of LangChain."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.tools import ToolCall

pytestmark = [pytest.mark.usefixtures("never_hung"), pytest.mark.sampled]

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def tools_of(toolset: Toolset) -> dict[str, Any]:
    from weakfs.integrations.langchain import structured_tools

    return {tool.name: tool for tool in structured_tools(toolset, caller="agent")}


def called(tool: Any, is_async: bool, **arguments: Any) -> Any:
    call = {"type": "tool_call", "id": "c1", "name": tool.name, "args": arguments}
    return asyncio.run(tool.ainvoke(call)) if is_async else tool.invoke(call)


@pytest.mark.parametrize("provider", [None, "openai", "anthropic", "gemini"])
def test_models_get_the_names_and_schemas_of_the_toolset(provider: Any) -> None:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    toolset = Toolset(Session(), provider=provider)
    form: Any = "mcp" if provider is None else "anthropic" if provider == "gemini" else provider
    for given in toolset.definitions(form, strict_schemas=False):
        definition: Any = given.get("function", given)
        sent = convert_to_openai_tool(tools_of(toolset)[definition["name"]])["function"]
        schema = next(definition[key] for key in ("input_schema", "inputSchema", "parameters") if key in definition)
        assert sent["description"] == definition["description"]
        assert sent["parameters"]["properties"].keys() == schema["properties"].keys()
        assert sent["parameters"].get("required", []) == schema.get("required", [])


def test_a_call_is_recorded_under_the_id_in_the_artifact(is_async: bool) -> None:
    session = Session()
    answer = called(tools_of(Toolset(session))["write_file"], is_async, path="/a", content="x")
    assert (answer.status, answer.content, answer.tool_call_id) == ("success", "Created /a (1 byte)", "c1")
    (call,) = session[ToolCall].all()
    assert (call.call_id, call.caller) == (answer.artifact["call_id"], "agent")


@pytest.mark.parametrize("arguments", [{"path": "/none"}, {"path": 3}, {"wrong": "/a"}])
def test_a_failed_call_is_a_message_with_an_error(is_async: bool, arguments: dict[str, Any]) -> None:
    answer = called(tools_of(Toolset(Session()))["read_file"], is_async, **arguments)
    assert (answer.status, answer.artifact) == ("error", None)
    assert answer.content


def test_an_image_is_a_block_of_the_message(is_async: bool) -> None:
    session = Session()
    InMemoryFilesystem(session).write_bytes("/a.png", PIXEL)
    answer = called(tools_of(Toolset(session, provider="anthropic"))["read_file"], is_async, path="/a.png")
    text, image = answer.content_blocks
    assert (text["type"], image["type"], image["mime_type"]) == ("text", "image", "image/png")
    assert base64.b64decode(image["base64"]) == PIXEL
