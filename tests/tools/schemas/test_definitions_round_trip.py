"""A tool accepts what its schema allows, and refuses what it forbids: for every tool and provider.

A schema is less exact than the check of a call in two ways. `null` means that an optional argument is omitted, even if
the schema does not mention it. And 2.0 is a whole number to JSON Schema, but not to a call.
"""

from __future__ import annotations

from typing import cast

import pytest
from google.genai import types as gemini
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sampling import share
from tests.tools.schemas.schema_values import ANYTHING, Schema, allows, fitting
from weakfs import DEFAULT_TOOLS, Tool
from weakfs.tools import ToolValidationError
from weakfs.tools.providers.definitions import definitions
from weakfs.tools.providers.profiles import offered
from weakfs.tools.schemas.content import Provider


@st.composite
def calls(draw: st.DrawFn, schema: Schema) -> Schema:
    """Return arguments near what a schema allows: some values of another kind, some missing, some unknown."""
    arguments = cast(Schema, draw(fitting(schema)))
    properties = cast("dict[str, Schema]", schema["properties"])
    for name in draw(st.lists(st.sampled_from(sorted(properties)), max_size=2, unique=True)):
        if draw(st.booleans()):
            arguments[name] = draw(ANYTHING)
        else:
            arguments.pop(name, None)
    if draw(st.integers(0, 9)) == 0:
        arguments["no_such_argument"] = draw(ANYTHING)
    return arguments


def told() -> list[tuple[str, Tool, Schema]]:
    found: list[tuple[str, Tool, Schema]] = []
    for provider in ("anthropic", "mcp"):
        key = "input_schema" if provider == "anthropic" else "inputSchema"
        tools = offered(DEFAULT_TOOLS, provider)
        for tool, one in zip(tools, definitions(tools, provider), strict=True):
            found.append((provider, tool, cast(Schema, one[key])))
    for name, is_strict in (("openai-strict", True), ("openai", False)):
        tools = offered(DEFAULT_TOOLS, "openai")
        for tool, one in zip(tools, definitions(tools, "openai", strict_schemas=is_strict), strict=True):
            found.append((name, tool, cast(Schema, cast(Schema, one["function"])["parameters"])))
    return found


TOLD = told()
NAMES = [f"{provider}-{tool.name}" for provider, tool, _ in TOLD]


def is_read(tool: Tool, arguments: object) -> bool:
    try:
        tool.read_arguments(arguments)
    except ToolValidationError:
        return False
    return True


@pytest.mark.parametrize(("provider", "tool", "schema"), TOLD, ids=NAMES)
def test_arguments_that_the_schema_allows_are_accepted(provider: str, tool: Tool, schema: Schema) -> None:
    @settings(max_examples=share(30))
    @given(fitting(schema))
    def check(arguments: object) -> None:
        assert allows(schema, arguments)
        assert is_read(tool, arguments)

    check()


@pytest.mark.parametrize(("provider", "tool", "schema"), TOLD, ids=NAMES)
def test_the_schema_and_the_tool_reject_the_same_arguments(provider: str, tool: Tool, schema: Schema) -> None:
    needed = {parameter.name for parameter in tool.parameters if parameter.required}

    def optional(name: str) -> bool:
        return tool.aliases.get(name, name) not in needed

    @settings(max_examples=share(60))
    @given(calls(schema))
    def check(arguments: Schema) -> None:
        if provider == "openai-strict":
            # Everything is required there; a call that leaves out optional parameters is read nevertheless.
            left_out = {name: None for name in cast(Schema, schema["properties"]) if optional(name)}
            arguments = {**left_out, **arguments}
        else:
            arguments = {name: value for name, value in arguments.items() if value is not None or not optional(name)}
        assert allows(schema, arguments) == is_read(tool, arguments), arguments

    check()


def gemini_tools() -> list[tuple[Tool, Schema]]:
    tools = offered(DEFAULT_TOOLS, "gemini")
    made: list[tuple[Tool, Schema]] = []
    for tool, one in zip(tools, definitions(tools, _GEMINI), strict=True):
        # The client library's own conversion of it to JSON Schema.
        schema = gemini.Schema.model_validate(one["parameters"]).json_schema
        made.append((tool, schema.model_dump(mode="json", by_alias=True, exclude_none=True)))
    return made


_GEMINI: Provider = "gemini"


@pytest.mark.parametrize(("tool", "schema"), gemini_tools(), ids=[tool.name for tool, _ in gemini_tools()])
def test_arguments_that_the_gemini_schema_allows_are_accepted(tool: Tool, schema: Schema) -> None:
    @settings(max_examples=share(30))
    @given(fitting(schema))
    def check(arguments: object) -> None:
        assert allows(schema, arguments)
        assert is_read(tool, arguments)

    check()
