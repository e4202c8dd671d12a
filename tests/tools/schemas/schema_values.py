"""Values for schemas of parameters: allowed ones, and others."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

Schema = dict[str, object]

TEXTS = st.text(max_size=8)
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer())
ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), FRACTIONS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXTS, inner, max_size=2)),
    max_leaves=4,
)


def fitting(schema: Schema) -> st.SearchStrategy[object]:
    """Return a strategy for JSON values that a schema of parameters allows."""
    if not schema.keys() & {"type", "anyOf"}:
        return ANYTHING
    if "enum" in schema:
        return st.sampled_from(cast("list[object]", schema["enum"]))
    if "anyOf" in schema:
        return st.one_of(*map(fitting, cast("list[Schema]", schema["anyOf"])))
    kind = schema.get("type")
    if isinstance(kind, list):
        return st.one_of(*(fitting({**schema, "type": one}) for one in cast("list[object]", kind)))
    least = cast("int | None", schema.get("minimum"))
    by_type: dict[object, st.SearchStrategy[object]] = {
        "string": TEXTS,
        "boolean": st.booleans(),
        "integer": st.integers(min_value=least),
        "number": st.one_of(FRACTIONS.filter(lambda number: least is None or number >= least), st.integers(least)),
        "null": st.none(),
    }
    if kind == "array":
        return st.lists(fitting(cast(Schema, schema["items"])), max_size=3)
    if kind == "object" and "properties" not in schema:
        return st.dictionaries(TEXTS, fitting(cast(Schema, schema["additionalProperties"])), max_size=2)
    if kind == "object":
        properties = cast("dict[str, Schema]", schema.get("properties", {}))
        required = cast("list[str]", schema.get("required", []))
        return st.fixed_dictionaries(
            {name: fitting(properties[name]) for name in required},
            optional={name: fitting(one) for name, one in properties.items() if name not in required},
        )
    return by_type[kind]


def allows(schema: Schema, arguments: object) -> bool:
    """Return whether a schema allows a value, according to an independent validator."""
    return Draft202012Validator(schema).is_valid(cast(Any, arguments))
