"""Dialects of JSON Schema: OpenAI's strict mode, and Gemini's subset of OpenAPI."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

from weakfs.tools.schemas.fields import Schema
from weakfs.tools.schemas.parameters import nullable

# Keywords that OpenAI's strict mode accepts.
_STRICT = frozenset(
    {
        "type", "anyOf", "properties", "required", "additionalProperties", "items", "enum", "description", "default",
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format", "minItems",
        "maxItems",
    }
)  # fmt: skip

# Keywords that Gemini accepts. Others are left out, but calls are still checked against them.
_OPENAPI = frozenset(
    {
        "type", "format", "description", "nullable", "enum", "items", "properties", "required", "anyOf", "minimum",
        "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern",
    }
)  # fmt: skip
_OPENAPI_FORMATS = frozenset({"enum", "date-time", "int32", "int64", "float", "double"})


def _properties(schema: Schema) -> dict[str, Schema]:
    return cast("dict[str, Schema]", schema.get("properties", {}))


def _required(schema: Schema) -> list[str]:
    return cast("list[str]", schema.get("required", []))


def _options(schema: Schema) -> list[Schema]:
    return cast("list[Schema]", schema.get("anyOf", []))


def _inside(schema: Schema) -> list[Schema]:
    """Return the schemas directly inside one."""
    items = [cast(Schema, schema["items"])] if "items" in schema else []
    return [*_properties(schema).values(), *_options(schema), *items]


def _rebuilt(schema: Schema, rebuild: Callable[[Schema], Schema]) -> Schema:
    """Return a schema with the schemas directly inside it rebuilt."""
    made = dict(schema)
    if "properties" in schema:
        made["properties"] = {name: rebuild(one) for name, one in _properties(schema).items()}
    if "anyOf" in schema:
        made["anyOf"] = [rebuild(one) for one in _options(schema)]
    if "items" in schema:
        made["items"] = rebuild(cast(Schema, schema["items"]))
    return made


def _noted(schema: Schema, how: str) -> Schema:
    """Move the default into the description, for a dialect without a keyword for it."""
    if "default" not in schema:
        return schema
    made = {key: value for key, value in schema.items() if key != "default"}
    note = f"({how} {json.dumps(schema['default'], ensure_ascii=False)})"
    made["description"] = f"{schema['description']} {note}" if "description" in schema else note
    return made


def is_strict_compatible(schema: Schema) -> bool:
    """Return whether OpenAI's strict mode can express a schema: it has no arbitrary values and no free-form objects."""
    if ("type" not in schema and "anyOf" not in schema) or not schema.keys() <= _STRICT:
        return False
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return False
    return all(is_strict_compatible(one) for one in _inside(schema))


def strict(schema: Schema) -> Schema:
    """Rewrite a schema for OpenAI's strict mode: every property is required, and `null` omits an optional one."""
    made = _rebuilt(schema, strict)
    if "properties" not in schema:
        return made
    made["properties"] = {
        name: one if name in _required(schema) else nullable(_noted(one, "null stands for"))
        for name, one in _properties(made).items()
    }
    made["required"] = list(_properties(schema))
    return made


def openapi(schema: Schema) -> Schema:
    """Rewrite a schema in the subset of OpenAPI 3.0 that every version of Gemini accepts.

    `nullable` replaces the type `null`; choices are strings, even for numbers; `additionalProperties` is left out;
    defaults go into the description; and the siblings of `anyOf` move into each option.
    """
    made = _rebuilt(_noted(schema, "by default"), openapi)
    made = {key: value for key, value in made.items() if key in _OPENAPI}
    if made.get("format", "enum") not in _OPENAPI_FORMATS:
        del made["format"]
    kind = made.get("type")
    if isinstance(kind, list):
        made.update(type=cast("list[object]", kind)[0], nullable=True)
    elif kind == "null":
        del made["type"]
        made["nullable"] = True
    if not _properties(made):
        made.pop("properties", None)
    if "enum" in made:
        made.update(_written_choices(made))
        if not made["enum"]:
            del made["enum"]
    return _merge_into_options(made) if "anyOf" in made else made


def _written_choices(schema: Schema) -> Schema:
    """Return the choices of a string or an integer as strings; a boolean needs none, and Gemini refuses ""."""
    choices = cast("list[object]", schema["enum"])
    if schema.get("type") == "integer":
        return {"format": "enum", "enum": [str(choice) for choice in choices if choice is not None]}
    return {"enum": [choice for choice in choices if isinstance(choice, str) and choice]}


def _merge_into_options(schema: Schema) -> Schema:
    beside = {key: value for key, value in schema.items() if key != "anyOf"}
    options = [one for one in _options(schema) if one != {"nullable": True}]
    if len(options) < len(_options(schema)):
        beside["nullable"] = True
    return {"anyOf": [{**one, **beside} for one in options]}
