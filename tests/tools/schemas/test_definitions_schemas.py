"""How classes of parameters become schemas: every kind of type, in every dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, Literal, cast

import pytest
from attrs import Factory, field, frozen
from google.genai import types as gemini
from jsonschema import Draft202012Validator

from weakfs import Tool, ToolContext, ToolResult, param
from weakfs.tools.providers.definitions import definitions
from weakfs.tools.schemas import Schema, is_strict_compatible, openapi, schema_of, strict


@frozen
class Point:
    x: float
    y: float = 0.5


@frozen
class Everything:
    text: str = field(metadata=param("some text"))
    points: tuple[Point, ...]
    whole: int | None = field(metadata=param("null for none", at_least=1))
    size: Literal["s", "m"] = "m"
    step: Literal[1, 2] | None = None
    either: int | str | None = field(default=None, metadata=param("a number or a name", at_least=0))
    mixed: Literal["auto", 0] = field(default="auto", metadata=param("how many"))
    words: Sequence[str] = ()
    chance: float = inf
    sure: bool = False
    point: Point | None = None
    made: tuple[int, ...] = Factory(tuple)
    hidden: int = field(default=0, init=False)


def properties(schema: Schema) -> dict[str, Schema]:
    return cast("dict[str, Schema]", schema["properties"])


POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.5}},
    "required": ["x"],
    "additionalProperties": False,
}


def test_every_type_has_its_schema() -> None:
    schema = schema_of(Everything)

    Draft202012Validator.check_schema(schema)
    assert schema["required"] == ["text", "points", "whole"]
    assert properties(schema) == {
        "text": {"type": "string", "description": "some text"},
        "points": {"type": "array", "items": POINT},
        "whole": {"type": ["integer", "null"], "minimum": 1, "description": "null for none"},
        "size": {"type": "string", "enum": ["s", "m"], "default": "m"},
        "step": {"type": "integer", "enum": [1, 2]},
        "either": {
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}],
            "description": "a number or a name",
        },
        "mixed": {
            "anyOf": [{"type": "string", "enum": ["auto"]}, {"type": "integer", "enum": [0]}],
            "description": "how many",
            "default": "auto",
        },
        "words": {"type": "array", "items": {"type": "string"}},
        "chance": {"type": "number"},
        "sure": {"type": "boolean", "default": False},
        "point": POINT,
        "made": {"type": "array", "items": {"type": "integer"}},
    }


def test_strict_mode_requires_everything_and_allows_null_for_optional_arguments() -> None:
    schema = strict(schema_of(Everything))

    Draft202012Validator.check_schema(schema)
    assert schema["required"] == list(properties(schema))
    found = properties(schema)
    assert found["size"] == {
        "type": ["string", "null"],
        "enum": ["s", "m", None],
        "description": '(null stands for "m")',
    }
    assert found["either"]["anyOf"] == [{"type": "integer", "minimum": 0}, {"type": "string"}, {"type": "null"}]
    assert found["point"]["type"] == ["object", "null"]
    assert found["point"]["required"] == ["x", "y"]
    assert cast(Schema, found["points"]["items"])["required"] == ["x", "y"]
    assert found["mixed"]["description"] == 'how many (null stands for "auto")'
    assert "default" not in str(found)


def test_gemini_schemas_use_only_openapi_keywords() -> None:
    schema = openapi(schema_of(Everything))

    assert gemini.Schema.model_validate(schema)
    found = properties(schema)
    assert found["whole"] == {"type": "integer", "nullable": True, "minimum": 1, "description": "null for none"}
    assert found["step"] == {"type": "integer", "format": "enum", "enum": ["1", "2"]}
    assert found["either"] == {
        "anyOf": [
            {"type": "integer", "minimum": 0, "description": "a number or a name"},
            {"type": "string", "description": "a number or a name"},
        ]
    }
    assert found["point"] == {
        "type": "object",
        "properties": {"x": {"type": "number"}, "y": {"type": "number", "description": "(by default 0.5)"}},
        "required": ["x"],
    }
    assert "additionalProperties" not in str(schema)


@frozen
class Odd:
    choice: Literal["", "a", None]
    only_true: Literal[True]
    nothing: None
    rest: int | str | None


def test_gemini_gets_no_empty_choices_and_no_null_type() -> None:
    assert properties(openapi(schema_of(Odd))) == {
        "choice": {"type": "string", "nullable": True, "enum": ["a"]},
        "only_true": {"type": "boolean"},
        "nothing": {"nullable": True},
        "rest": {"anyOf": [{"type": "integer", "nullable": True}, {"type": "string", "nullable": True}]},
    }


@frozen
class Free:
    labels: Mapping[str, int]
    anything: object = None
    whatever: Any = None


def test_maps_and_arbitrary_values_are_described_if_the_dialect_allows() -> None:
    schema = schema_of(Free)

    assert properties(schema) == {
        "labels": {"type": "object", "additionalProperties": {"type": "integer"}},
        "anything": {},
        "whatever": {},
    }
    assert not is_strict_compatible(schema)
    assert properties(openapi(schema)) == {"labels": {"type": "object"}, "anything": {}, "whatever": {}}


def test_a_tool_that_strict_mode_cannot_express_is_defined_without_it() -> None:
    def handler(params: Free, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult("", None)

    (made,) = definitions([Tool("label", "Label.", Free, handler)], "openai")

    assert cast(Schema, made["function"])["strict"] is False
    assert cast(Schema, made["function"])["parameters"] == schema_of(Free)


@frozen
class Nothing:
    pass


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    def handler(params: Nothing, *, context: ToolContext) -> ToolResult[None]:
        return ToolResult("", None)

    tool = Tool("now", "Tell the time.", Nothing, handler)

    assert definitions([tool], "gemini") == [{"name": "now", "description": "Tell the time."}]
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    assert definitions([tool], "anthropic")[0]["input_schema"] == empty
    assert cast(Schema, definitions([tool], "openai")[0]["function"])["parameters"] == {**empty, "required": []}


FOR_PROGRAMS = {"for_models": False}


@frozen
class Reference:
    blob_ref: str = field(metadata=FOR_PROGRAMS)


@frozen
class Save:
    content: str | Reference = field(metadata=param("the text"))
    trace: bool = field(default=False, metadata=FOR_PROGRAMS)
    source: Reference | None = None


def test_parameters_hidden_from_models_are_not_in_definitions() -> None:
    assert schema_of(Save) == {
        "type": "object",
        "properties": {"content": {"type": "string", "description": "the text"}},
        "required": ["content"],
        "additionalProperties": False,
    }


def test_a_required_parameter_cannot_be_hidden_from_models() -> None:
    @frozen
    class Secret:
        key: str = field(metadata=FOR_PROGRAMS)

    with pytest.raises(TypeError, match=r"cannot hide Secret\.key from models: it is required"):
        schema_of(Secret)


def test_a_type_that_json_cannot_represent_is_refused() -> None:
    @frozen
    class Wrong:
        pair: complex

    with pytest.raises(TypeError, match="cannot describe <class 'complex'> to models"):
        schema_of(Wrong)
