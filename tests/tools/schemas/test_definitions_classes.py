"""Schemas of random classes: values that they allow are accepted, and others are refused."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Literal, cast

import attrs
import pytest
from google.genai import types as gemini
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.tools.schemas.schema_values import ANYTHING, Schema, allows, fitting
from weakfs import param
from weakfs.tools import ToolValidationError
from weakfs.tools.schemas import is_strict_compatible, openapi, schema_of, strict
from weakfs.tools.schemas.arguments import parameters_of, reader

CHOICES = st.lists(st.one_of(st.sampled_from(["a", "b c", "\u00fc"]), st.integers(-2, 2), st.booleans()), min_size=1)
PLAIN = st.sampled_from([str, int, float, bool, object])


def types_over(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(
        inner.map(lambda hint: tuple[hint, ...]),  # type: ignore[valid-type]  # pyright: ignore[reportInvalidTypeForm]
        inner.map(lambda hint: Mapping[str, hint]),  # type: ignore[valid-type]  # pyright: ignore[reportInvalidTypeForm]
        st.lists(st.one_of(inner, st.just(type(None))), min_size=1, max_size=3).map(lambda hints: reduce(or_, hints)),
        classes(inner),
    )


@st.composite
def classes(draw: st.DrawFn, hints: st.SearchStrategy[object]) -> type:
    """Make a class of parameters, some of which are optional or bounded."""
    fields: dict[str, object] = {}
    for name in draw(st.lists(st.sampled_from("abcde"), max_size=3, unique=True)):
        metadata = param(draw(st.sampled_from(["", "what it is"])), at_least=draw(st.sampled_from([None, -5])))
        default = None if draw(st.booleans()) else attrs.NOTHING
        fields[name] = attrs.field(type=cast(type, draw(hints)), default=default, metadata=metadata, kw_only=True)
    return attrs.make_class("Params", fields, frozen=True)


HINTS = st.recursive(
    st.one_of(PLAIN, CHOICES.map(lambda choices: Literal[tuple(choices)])),
    types_over,
    max_leaves=5,
)


def is_read(params: type, arguments: object) -> bool:
    try:
        reader(params, parameters_of(params), {})(arguments)
    except ToolValidationError:
        return False
    return True


@given(classes(HINTS), st.data())
def test_values_that_a_schema_allows_are_accepted(params: type, data: st.DataObject) -> None:
    schema = schema_of(params)
    Draft202012Validator.check_schema(schema)

    arguments = data.draw(fitting(schema))

    assert allows(schema, arguments)
    assert is_read(params, arguments)


@given(classes(HINTS), st.data())
def test_values_that_a_strict_schema_allows_are_accepted(params: type, data: st.DataObject) -> None:
    if is_strict_compatible(schema_of(params)):
        schema = strict(schema_of(params))
        Draft202012Validator.check_schema(schema)

        arguments = data.draw(fitting(schema))

        assert allows(schema, arguments)
        assert is_read(params, arguments)


@given(classes(HINTS), st.data())
def test_a_schema_and_a_call_agree_on_a_value_of_another_kind(params: type, data: st.DataObject) -> None:
    schema = schema_of(params)
    arguments = cast(Schema, data.draw(fitting(schema)))
    names = sorted(cast(Schema, schema["properties"]))
    if names:
        name = data.draw(st.sampled_from(names))
        # A parameter left out and null are the same to a call; the schema of an optional parameter does not mention
        # null.
        arguments[name] = data.draw(ANYTHING.filter(has_no_null))

    assert allows(schema, arguments) == is_read(params, arguments)


def has_no_null(value: object) -> bool:
    if isinstance(value, dict):
        return all(has_no_null(one) for one in cast(Schema, value).values())
    return value is not None and (not isinstance(value, list) or all(map(has_no_null, cast("list[object]", value))))


@given(classes(HINTS))
def test_gemini_accepts_every_schema(params: type) -> None:
    made = openapi(schema_of(params))

    found = gemini.Schema.model_validate(made)

    assert found.type == gemini.Type.OBJECT
    if made.get("properties"):
        assert found.properties is not None
        assert found.properties.keys() == cast(Schema, made["properties"]).keys()
    check_openapi(made)


def check_openapi(schema: Schema) -> None:
    """Check for keywords that no version of Gemini accepts."""
    assert schema.keys() <= {
        "type", "format", "description", "nullable", "enum", "items", "properties", "required", "anyOf", "minimum",
    }  # fmt: skip
    assert isinstance(schema.get("type", ""), str)
    assert "anyOf" not in schema or schema.keys() == {"anyOf"}
    assert all(isinstance(choice, str) and choice for choice in cast("list[object]", schema.get("enum", [])))
    inside = [*cast("dict[str, Schema]", schema.get("properties", {})).values()]
    inside += cast("list[Schema]", schema.get("anyOf", []))
    inside += [cast(Schema, schema["items"])] if "items" in schema else []
    for one in inside:
        check_openapi(one)


def test_a_class_that_cannot_be_parameters_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot use int for parameters: it declares no fields"):
        schema_of(int)
