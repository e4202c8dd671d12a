"""Tool definitions for models, checked with the types of the providers' client libraries."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import cast

import pytest
from anthropic.types import ToolParam
from attrs import evolve, field, frozen
from google.genai import types as gemini
from jsonschema import Draft202012Validator
from mcp import types as mcp
from openai.lib._pydantic import _ensure_strict_json_schema  # pyright: ignore[reportPrivateUsage]
from openai.types.chat import ChatCompletionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from weakfs import DEFAULT_TOOLS, Session, Tool, ToolContext, ToolResult, Toolset, param
from weakfs.tools import PROCESS_TOOLS
from weakfs.tools.providers.definitions import definitions
from weakfs.tools.schemas.content import Provider

Definition = dict[str, object]

PROVIDERS: tuple[Provider, ...] = ("openai", "anthropic", "gemini", "mcp")


@frozen
class Count:
    path: str = field(metadata=param("the file"))
    longer_than: int = 0


def count(params: Count, *, context: ToolContext) -> ToolResult[int]:
    return ToolResult("3 words", 3)


COUNT = Tool("count_words", "Count the words of a file.", Count, count, read_only=True)
EDIT = next(tool for tool in DEFAULT_TOOLS if tool.name == "edit_file")


@frozen
class Patch:
    patch: str


def stand_in(name: str) -> Tool:
    """Make a custom tool with the name of a built-in one."""
    return Tool(name, "Somebody's own.", Patch, count)


def function(definition: Definition) -> Definition:
    return cast(Definition, definition["function"])


def names(found: list[Definition], provider: str = "") -> list[object]:
    return [(function(one) if provider == "openai" else one)["name"] for one in found]


def schema(definition: Definition, provider: str) -> Definition:
    if provider == "openai":
        definition = function(definition)
    key = {"anthropic": "input_schema", "mcp": "inputSchema"}.get(provider, "parameters")
    return cast(Definition, definition[key])


def properties(definition: Definition, provider: str) -> dict[str, Definition]:
    return cast("dict[str, Definition]", schema(definition, provider)["properties"])


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        (ChatCompletionToolParam, definitions([*DEFAULT_TOOLS, COUNT], "openai")),
        (ChatCompletionToolParam, definitions([*DEFAULT_TOOLS, COUNT], "openai", strict_schemas=False)),
        (FunctionToolParam, definitions([*DEFAULT_TOOLS, COUNT], "openai", api="responses")),
        (ToolParam, definitions([*DEFAULT_TOOLS, COUNT], "anthropic")),
    ],
)
def test_definitions_match_the_types_of_the_client_library(kind: object, made: list[Definition]) -> None:
    # A typed dict drops unknown keys: nothing may be missing afterwards.
    assert TypeAdapter(list[kind]).validate_python(made) == made  # type: ignore[valid-type]  # a parameter of the test


def test_gemini_declarations_form_a_tool_of_the_client_library() -> None:
    made = definitions([*DEFAULT_TOOLS, COUNT], "gemini")

    tool = gemini.Tool.model_validate({"function_declarations": made})

    assert tool.model_dump(mode="json", by_alias=True, exclude_none=True)["functionDeclarations"] == upper_types(made)
    for declaration in made:
        assert gemini.FunctionDeclaration.model_validate(declaration).name == declaration["name"]


def upper_types(value: object) -> object:
    """Write types as the client library does, which accepts both cases."""
    if isinstance(value, dict):
        items = cast(Definition, value)
        return {
            key: one.upper() if key == "type" and isinstance(one, str) else upper_types(one)
            for key, one in items.items()
        }
    return [upper_types(one) for one in cast("list[object]", value)] if isinstance(value, list) else value


def test_mcp_definitions_are_tools_of_the_client_library() -> None:
    made = definitions([*DEFAULT_TOOLS, COUNT], "mcp")

    found = mcp.ListToolsResult.model_validate({"tools": made})

    dumped = found.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert dumped["tools"] == made


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_schema_is_json_schema(provider: Provider) -> None:
    for definition in definitions([*DEFAULT_TOOLS, COUNT], provider):
        Draft202012Validator.check_schema(schema(definition, provider))


def test_the_same_tools_give_the_same_json_whatever_the_hash_seed() -> None:
    code = (
        "import json; from weakfs import DEFAULT_TOOLS; "
        "from weakfs.tools.providers.definitions import definitions; "
        f"print(json.dumps([definitions(DEFAULT_TOOLS, provider) for provider in {PROVIDERS!r}]))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {json.dumps([definitions(DEFAULT_TOOLS, provider) for provider in PROVIDERS])}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_tools_keep_their_order_and_have_a_description(provider: Provider) -> None:
    found = definitions(reversed([*DEFAULT_TOOLS, COUNT]), provider)

    order = [tool.name for tool in reversed([*DEFAULT_TOOLS, COUNT])]
    assert names(found, provider) == [name for name in order if name in names(found, provider)]
    told = {tool.name: tool.description for tool in (*DEFAULT_TOOLS, COUNT)}
    for definition in found:
        one = function(definition) if provider == "openai" else definition
        assert one["description"] == told[cast(str, one["name"])]


def test_each_provider_gets_the_edit_tool_that_its_models_know() -> None:
    def edits(provider: Provider) -> list[object]:
        found = names(definitions([*DEFAULT_TOOLS, COUNT], provider), provider)
        assert "count_words" in found
        return [name for name in found if name in ("edit_file", "apply_patch")]

    assert edits("openai") == ["apply_patch"]
    assert edits("mcp") == ["edit_file", "apply_patch"]
    assert edits("anthropic") == edits("gemini") == ["edit_file"]


def test_a_toolset_that_has_only_one_edit_tool_keeps_it() -> None:
    assert names(definitions([EDIT], "openai"), "openai") == ["edit_file"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_custom_tool_is_offered_to_every_provider_whatever_its_name(provider: Provider) -> None:
    tools = [COUNT, stand_in("edit_file"), stand_in("apply_patch")]

    assert names(definitions(tools, provider), provider) == ["count_words", "edit_file", "apply_patch"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_definitions_use_the_path_argument_that_models_know_and_calls_accept_it(provider: Provider) -> None:
    toolset = Toolset(Session(session_id="s"))
    found = {
        cast(str, name): one
        for one, name in zip(
            definitions(toolset.tools, provider), names(definitions(toolset.tools, provider), provider), strict=True
        )
    }
    path = "path" if provider == "mcp" else "file_path"

    for name in ("read_file", "write_file", "edit_file"):
        if name in found:
            assert next(iter(properties(found[name], provider))) == path
    assert next(iter(properties(found["grep"], provider))) == "pattern"
    assert toolset.call("write_file", {path: "/a", "content": "x"}).success
    assert toolset.call("edit_file", {path: "/a", "old_string": "x", "new_string": "y"}).success
    assert toolset.call("read_file", {path: "/a"}).message == "y"
    for tool in toolset.tools:
        for one in properties(found[tool.name], provider) if tool.name in found else ():
            assert one in {parameter.name for parameter in tool.parameters} | tool.aliases.keys()


def test_a_tool_without_the_alias_keeps_its_own_name() -> None:
    plain = evolve(EDIT, aliases={})

    assert "path" in properties(definitions([plain], "anthropic")[0], "anthropic")


def test_strict_schemas_equal_those_of_the_openai_library() -> None:
    for definition in definitions([*DEFAULT_TOOLS, COUNT], "openai"):
        made = schema(definition, "openai")
        assert function(definition)["strict"] is True
        assert made["required"] == list(properties(definition, "openai"))
        assert _ensure_strict_json_schema(copy.deepcopy(made), path=(), root=made) == made


def test_strict_arguments_with_null_for_omitted_ones_are_accepted() -> None:
    toolset = Toolset(Session(session_id="s"))
    read = next(one for one in definitions(toolset.tools, "openai") if function(one)["name"] == "read_file")
    toolset.call("write_file", {"file_path": "/a", "content": "x", "mode": None, "create_parents": None})

    result = toolset.call("read_file", {**dict.fromkeys(properties(read, "openai")), "file_path": "/a"})

    assert result.message == "x"


def test_schemas_that_are_not_strict_leave_optional_parameters_optional() -> None:
    (made,) = definitions([COUNT], "openai", strict_schemas=False)

    assert function(made)["strict"] is False
    assert schema(made, "openai") == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "the file"},
            "longer_than": {"type": "integer", "default": 0},
        },
        "required": ["path"],
        "additionalProperties": False,
    }


def test_definitions_for_the_responses_api_are_one_level_flatter() -> None:
    (chat,), (response,) = definitions([COUNT], "openai"), definitions([COUNT], "openai", api="responses")

    assert response == {"type": "function", **function(chat)}


def test_mcp_definitions_say_what_a_tool_may_do() -> None:
    found = {one["name"]: one for one in definitions([*DEFAULT_TOOLS, COUNT], "mcp")}

    def tells(name: str) -> dict[str, bool]:
        return cast("dict[str, bool]", found[name]["annotations"])

    for tool in DEFAULT_TOOLS:
        assert tells(tool.name)["readOnlyHint"] is tool.read_only
        assert not (tool.read_only and tells(tool.name)["destructiveHint"])
        assert tells(tool.name)["openWorldHint"] is (tool.name == "shell")
    assert tells("rm")["destructiveHint"]
    assert not tells("mkdir")["destructiveHint"]
    assert tells("mkdir")["idempotentHint"]
    assert not tells("write_file")["idempotentHint"]
    assert tells("count_words") == {"readOnlyHint": True}


def test_titles_read_like_commands() -> None:
    titles = {one["name"]: one["title"] for one in definitions([*DEFAULT_TOOLS, *PROCESS_TOOLS, COUNT], "mcp")}
    assert (titles["read_file"], titles["process_start"], titles["count_words"]) == (
        "Read file",
        "Start process",
        "Count words",
    )


def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no provider 'clippy'; use one of openai, anthropic, gemini, mcp"):
        definitions(DEFAULT_TOOLS, "clippy")  # type: ignore[arg-type]  # what a program without types would do
    with pytest.raises(ValueError, match="OpenAI has no API 'fax'; use one of chat, responses"):
        definitions(DEFAULT_TOOLS, "openai", api="fax")  # type: ignore[arg-type]  # the same


def test_a_name_that_gemini_rejects_is_refused_before_it_is_sent() -> None:
    tool = evolve(COUNT, name="3d_view")

    assert names(definitions([tool], "anthropic")) == ["3d_view"]
    with pytest.raises(ValueError, match="cannot describe '3d_view' to Gemini: names start with a letter"):
        definitions([tool], "gemini")


def test_the_definitions_of_all_tools_stay_small() -> None:
    for provider, most in (("anthropic", 9_000), ("gemini", 9_000), ("openai", 12_000), ("mcp", 13_000)):
        made = Toolset(Session(session_id="s")).definitions(cast(Provider, provider))

        assert len(json.dumps(made)) < most, provider
