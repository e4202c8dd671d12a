"""JSON Schema (2020-12) of a parameter class, according to the rules that `weakfs.tools.schemas.arguments` enforces.

`null` means that a parameter is left out, so the schema of an optional parameter does not mention it.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal, Union, cast, get_args, get_origin

from weakfs.tools.schemas.fields import Field, Schema, fields_of, has_fields
from weakfs.tools.schemas.pydantic_models import is_model, model_schema, without_null

NULL: type = type(None)

PLAIN: dict[object, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    object: {},
    Any: {},
    NULL: {"type": "null"},
    # Bytes occur in results only, in this recorded form.
    bytes: {
        "type": "object",
        "properties": {"base64": {"type": "string"}},
        "required": ["base64"],
        "additionalProperties": False,
    },
}


def schema_of(params: type, names: Mapping[str, str] | None = None, *, without: Sequence[str] = ()) -> Schema:
    """Return the JSON Schema of what a call may give for the parameters of a class.

    `names` renames parameters, and `without` leaves optional ones out. Parameters marked with
    `param(..., for_models=False)` are left out too, as is a class in a union if nothing else remains of it. Raises
    `TypeError` if a required parameter would be left out.
    """
    if is_model(params):
        return _renamed(model_schema(params), names or {})
    properties: dict[str, object] = {}
    required: list[str] = []
    for field in fields_of(params):
        if field.name in without and not field.required:
            continue
        shown = _shown(field.hint) if field.for_models else None
        if shown is None:
            if field.required:
                raise TypeError(
                    f"cannot hide {params.__name__}.{field.name} from models: it is required; "
                    f"give it a default, or leave out for_models=False"
                )
            continue
        name = field.name if names is None else names.get(field.name, field.name)
        properties[name] = _with_metadata(shown if field.required else _without_null(shown), field)
        if field.required:
            required.append(name)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schema


def nullable(schema: Schema) -> Schema:
    """Allow `null` as well."""
    kind, choices, options = schema.get("type"), schema.get("enum"), schema.get("anyOf")
    if isinstance(options, list):
        return {**schema, "anyOf": [*cast("list[object]", options), dict(PLAIN[NULL])]}
    if not isinstance(kind, str) or kind == "null":
        return schema  # accepts anything, or null already
    more: Schema = {"enum": [*cast("list[object]", choices), None]} if isinstance(choices, list) else {}
    return {**schema, "type": [kind, "null"], **more}


def _renamed(schema: Schema, names: Mapping[str, str]) -> Schema:
    properties, required = cast(Schema, schema["properties"]), cast("list[str]", schema.get("required", []))
    made = {**schema, "properties": {names.get(name, name): one for name, one in properties.items()}}
    return {**made, "required": [names.get(name, name) for name in required]} if required else made


def _with_metadata(schema: Schema, field: Field) -> Schema:
    least, description = field.metadata.get("at_least"), field.metadata.get("description")
    if isinstance(least, int | float):
        schema = _bounded(schema, least)
    if description:
        schema = {**schema, "description": description}
    if isinstance(field.default, str | int) or (isinstance(field.default, float) and isfinite(field.default)):
        schema = {**schema, "default": field.default}
    return schema


def _bounded(schema: Schema, least: float) -> Schema:
    options = schema.get("anyOf")
    if isinstance(options, list):
        return {**schema, "anyOf": [_bounded(one, least) for one in cast("list[Schema]", options)]}
    kind = schema.get("type")
    kinds = cast("list[object]", kind) if isinstance(kind, list) else [kind]
    return {**schema, "minimum": least} if "integer" in kinds or "number" in kinds else schema


def _without_null(schema: Schema) -> Schema:
    """Undo `nullable`: an optional parameter need not mention `null`, because it may be left out."""
    kind, choices = schema.get("type"), schema.get("enum")
    if not isinstance(kind, list):
        return without_null(schema)
    more: Schema = {"enum": cast("list[object]", choices)[:-1]} if isinstance(choices, list) else {}
    return {**schema, "type": cast("list[object]", kind)[0], **more}


def _shown(hint: object) -> Schema | None:
    """Return the schema of one type; `None` if it is not shown to models."""
    if hint in PLAIN:
        return dict(PLAIN[hint])
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _choices(inner)
    if origin in (Union, types.UnionType):
        return _any_of([_shown(one) for one in inner])
    if origin is tuple or origin is Sequence:
        item = _shown(inner[0])
        return None if item is None else {"type": "array", "items": item}
    if origin in (dict, Mapping):
        item = _shown(inner[1])
        return None if item is None else {"type": "object", "additionalProperties": item}
    if isinstance(hint, type) and is_model(hint):
        return model_schema(hint)
    if isinstance(hint, type) and has_fields(hint):
        fields = fields_of(hint)
        return schema_of(hint) if not fields or any(field.for_models for field in fields) else None
    raise TypeError(f"cannot describe {hint!r} to models: JSON cannot represent it")


def _choices(choices: Sequence[object]) -> Schema | None:
    """Return the schema of literals, grouped by their type."""
    by_type: dict[type, list[object]] = {}
    for choice in choices:
        by_type.setdefault(type(choice), []).append(choice)
    return _any_of(
        [dict(PLAIN[kind]) if kind is NULL else {**PLAIN[kind], "enum": some} for kind, some in by_type.items()]
    )


def _any_of(kinds: Sequence[Schema | None]) -> Schema | None:
    options = [option for kind in kinds for option in _flat(kind)]
    shown = [option for option in options if option is not None and option != PLAIN[NULL]]
    if not shown:
        return None if None in options else dict(PLAIN[NULL])
    schema: Schema = shown[0] if len(shown) == 1 else {"anyOf": shown}
    return nullable(schema) if PLAIN[NULL] in options else schema


def _flat(schema: Schema | None) -> Sequence[Schema | None]:
    """Return the options of a schema that has only `anyOf`, such as literals of several types."""
    return cast("list[Schema]", schema["anyOf"]) if schema and "anyOf" in schema else [schema]
