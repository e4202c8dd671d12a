"""Parameters as attrs classes, standard dataclasses and pydantic models: one call, one schema."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import date
from typing import Annotated, Literal, cast

import pytest
from attrs import field, frozen
from google.genai import types as gemini
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, field_validator

from weakfs import Session, Tool, ToolContext, ToolResult, Toolset, param
from weakfs.tools import ToolCalls
from weakfs.tools.schemas import is_strict_compatible, openapi, strict


@frozen
class AttrsParams:
    text: str = field(metadata=param("the text"))
    times: int = field(default=2, metadata=param("how often", at_least=1))
    how: Literal["plain", "loud"] = "plain"


@dataclass(frozen=True)
class DataclassParams:
    text: str = dataclass_field(metadata=param("the text"))
    times: int = dataclass_field(default=2, metadata=param("how often", at_least=1))
    how: Literal["plain", "loud"] = "plain"


class PydanticParams(BaseModel):
    """Repeat a text."""

    text: str = Field(description="the text")
    times: int = Field(default=2, ge=1, description="how often")
    how: Literal["plain", "loud"] = "plain"


def say(params: AttrsParams | DataclassParams | PydanticParams, *, context: ToolContext) -> ToolResult[object]:
    said = " ".join([params.text] * params.times)
    return ToolResult(said.upper() if params.how == "loud" else said, params)


def tool_of(params: type) -> Tool:
    return Tool("say", "Say a text.", params, say, read_only=True)


def answer(params: type, arguments: Mapping[str, object] | str) -> ToolResult[object]:
    return Toolset(Session(), tools=[tool_of(params)]).call("say", arguments)


CLASSES = pytest.mark.parametrize("params", [AttrsParams, DataclassParams, PydanticParams])


@CLASSES
def test_a_call_is_read_into_each_kind_of_class(params: type) -> None:
    result = answer(params, '{"text": "ho", "how": "loud"}')

    assert result.message == "HO HO"
    assert isinstance(result.value, params)
    assert answer(params, {"text": "ho", "times": None}).message == "ho ho"


@CLASSES
def test_errors_in_a_call_are_named_for_each_kind_of_class(params: type) -> None:
    for arguments, problem in [
        ({}, "text: missing; give the text"),
        ({"text": 5}, "text: "),
        ({"text": "a", "times": 0}, "times: "),
        ({"text": "a", "how": "sad"}, "how: "),
        ({"text": "a", "tims": 1}, "tims: no such argument; did you mean times?"),
        ({"text": None}, "text: "),
    ]:
        result = answer(params, cast("Mapping[str, object]", arguments))
        assert result.error_code == "invalid_arguments"
        assert result.message.startswith(f"cannot call say: {problem}")


@CLASSES
def test_every_kind_of_class_has_one_schema(params: type) -> None:
    schema = tool_of(params).json_schema

    Draft202012Validator.check_schema(schema)
    if params is PydanticParams:
        assert schema.pop("description") == "Repeat a text."
    assert schema == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "the text"},
            "times": {"type": "integer", "minimum": 1, "description": "how often", "default": 2},
            "how": {"type": "string", "enum": ["plain", "loud"], "default": "plain"},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


@CLASSES
def test_every_provider_is_offered_each_kind_of_class(params: type) -> None:
    tools = Toolset(Session(), tools=[tool_of(params)])

    (function,) = tools.definitions("openai", api="responses")
    assert function["strict"] is True
    (declaration,) = tools.definitions("gemini")
    assert gemini.FunctionDeclaration.model_validate(declaration).name == "say"
    assert tools.definitions("anthropic")[0]["name"] == tools.definitions("mcp")[0]["name"] == "say"


@dataclass
class Inner:
    name: str


@dataclass
class Outer:
    inners: tuple[Inner, ...]
    more: Mapping[str, int] = dataclass_field(default_factory=dict[str, int])
    made: int = dataclass_field(default=0, init=False)


def test_a_dataclass_may_have_factories_init_false_fields_and_nested_classes() -> None:
    tool = Tool("outer", "For tests.", Outer, say)

    made = tool.read_arguments({"inners": [{"name": "a"}]})

    assert made == Outer((Inner("a"),))
    assert set(cast("dict[str, object]", tool.json_schema["properties"])) == {"inners", "more"}


class Step(BaseModel):
    model_config = ConfigDict(strict=True)

    day: date
    kind: Literal["start"] = "start"


class Plan(BaseModel):
    steps: tuple[Step, ...]
    title: Annotated[str | None, Field(alias="plan-title", max_length=5)] = None

    @field_validator("steps")
    @classmethod
    def check_steps(cls, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        if not steps:
            raise ValueError("a plan has at least one step")
        return steps


def plan_tool() -> Tool:
    def run(params: Plan, *, context: ToolContext) -> ToolResult[object]:
        return ToolResult(f"{params.title}: {params.steps[0].day.isoformat()}", params)

    return Tool("plan", "Make a plan.", Plan, run)


def test_a_strict_model_accepts_json_values_and_is_recorded() -> None:
    tools = Toolset(Session(), tools=[plan_tool()])

    result = tools.call("plan", {"steps": [{"day": "2024-05-01"}], "plan-title": "May"})

    assert result.message == "May: 2024-05-01"
    (call,) = tools.session[ToolCalls].all()
    assert call.read_receipt() == {"steps": [{"day": "2024-05-01", "kind": "start"}], "title": "May"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"steps": [{"day": 5}]}, "steps[0].day: "),
        ({"steps": []}, "steps: Value error, a plan has at least one step"),
        ({"steps": [{"day": "2024-05-01"}], "plan-title": "December"}, "plan-title: String should have at most 5"),
        ({"steps": {1, 2}}, "arguments: Object of type set is not JSON serializable"),
    ],
)
def test_errors_of_pydantic_are_answers_with_their_place(arguments: Mapping[str, object], problem: str) -> None:
    result = Toolset(Session(), tools=[plan_tool()]).call("plan", arguments)

    assert result.error_code == "invalid_arguments"
    assert result.message.startswith(f"cannot call plan: {problem}")


def test_the_schema_of_a_model_has_no_references_and_fits_each_dialect() -> None:
    schema = plan_tool().json_schema
    step = {
        "type": "object",
        "properties": {
            "day": {"type": "string", "format": "date"},
            "kind": {"type": "string", "enum": ["start"], "default": "start"},
        },
        "required": ["day"],
    }

    assert schema["properties"] == {
        "steps": {"type": "array", "items": step},
        "plan-title": {"type": "string", "maxLength": 5},
    }
    assert not is_strict_compatible(schema)
    assert gemini.Schema.model_validate(openapi(schema)).properties is not None
    assert "format" not in str(openapi(schema))


def test_an_optional_parameter_of_a_model_may_be_null_in_strict_mode() -> None:
    class Optional(BaseModel):
        name: str | None = None

    schema = Tool("optional", "", Optional, say).json_schema

    assert schema["properties"] == {"name": {"type": "string"}}
    assert strict(schema)["properties"] == {"name": {"type": ["string", "null"]}}


def test_a_model_that_allows_extra_arguments_gets_them() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        name: str

    tool = Tool("open", "", Open, say)

    made = cast(Open, tool.read_arguments({"name": "a", "other": 5}))

    assert made.model_extra == {"other": 5}
    assert tool.json_schema["additionalProperties"] is True


def test_a_recursive_model_is_refused_when_the_tool_is_created() -> None:
    class Node(BaseModel):
        children: list[Node] = []

    with pytest.raises(TypeError, match="cannot describe Node to models: it contains itself"):
        Tool("node", "", Node, say)


def test_a_class_without_fields_is_refused_with_what_can_be_used() -> None:
    class Plain:
        pass

    with pytest.raises(TypeError, match=r"decorate it with @attrs\.frozen or @dataclass, or make it a pydantic model"):
        tool_of(Plain)


def test_tools_are_used_without_importing_pydantic() -> None:
    code = (
        "import sys; from weakfs import Session, Toolset; tools = Toolset(Session());"
        "tools.call('ls', '{}'); tools.definitions('openai'); print('pydantic' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
