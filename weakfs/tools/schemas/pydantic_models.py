"""Parameters declared as pydantic models (version 2): their schema and their validation are pydantic's own.

Nothing here imports pydantic: a program that passes a model has imported it already.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeGuard, cast

from weakfs.tools.schemas.fields import Schema

# Schemas inside a schema: one, a list of them, or one for each name.
_SINGLE = ("items", "additionalProperties")
_SEVERAL = ("anyOf", "allOf", "prefixItems")


class _Model(Protocol):
    model_config: Mapping[str, object]

    def model_json_schema(self) -> Schema: ...
    def model_validate_json(self, json_data: str) -> object: ...


def is_model(params: object) -> TypeGuard[_Model]:
    """Return whether `params` is a pydantic model."""
    return isinstance(params, type) and _is_model(params)


@lru_cache(1024)
def _is_model(params: type) -> bool:
    return all(callable(getattr(params, name, None)) for name in ("model_json_schema", "model_validate_json"))


def takes_unknown(params: object) -> bool:
    """Return whether a model accepts undeclared names; by default a call with one fails."""
    return is_model(params) and params.model_config.get("extra") in ("allow", "ignore")


def model_schema(params: _Model) -> Schema:
    """Return a model's JSON Schema without references: each definition is inlined where it is used.

    Raises `TypeError` for a model that contains itself.
    """
    schema = params.model_json_schema()
    definitions = cast("dict[str, Schema]", schema.pop("$defs", {}))
    made = _inlined(schema, definitions, ())
    properties = cast("dict[str, Schema]", made.setdefault("properties", {}))
    required = cast("list[str]", made.get("required", []))
    made["properties"] = {name: one if name in required else without_null(one) for name, one in properties.items()}
    if not takes_unknown(params):
        made["additionalProperties"] = False
    return made


def read_model(params: _Model, values: Mapping[str, object], where: str, problems: list[str]) -> object:
    """Create the model from JSON values; add the problems that pydantic finds to `problems`."""
    try:
        # From JSON text, so that strict models accept JSON's representation of tuples, dates and enums.
        return params.model_validate_json(json.dumps(values))
    except (ValueError, TypeError) as error:
        errors = getattr(error, "errors", None)
        if errors is None:
            problems.append(f"{where.rstrip('.') or 'arguments'}: {error}")
        else:
            problems.extend(f"{_place(where, one['loc'])}: {one['msg']}" for one in errors(include_url=False))
        return None


def _place(where: str, location: Sequence[str | int]) -> str:
    """Return where a problem is, as `edits[0].old`."""
    place = where.rstrip(".")
    for step in location:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else step
    return place or "arguments"


def _inlined(schema: Schema, definitions: Mapping[str, Schema], within: tuple[str, ...]) -> Schema:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        name = reference.rpartition("/")[2]
        if name in within:
            raise TypeError(f"cannot describe {name} to models: it contains itself; use a Mapping or a list of texts")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_inlined(definitions[name], definitions, (*within, name)), **beside}
    made = {key: value for key, value in schema.items() if key not in ("title", "discriminator")}
    if made.get("default", 0) is None:
        del made["default"]
    if "const" in made:
        made["enum"] = [made.pop("const")]
    if "oneOf" in made:
        made["anyOf"] = made.pop("oneOf")
    for key in _SINGLE:
        if isinstance(made.get(key), dict):
            made[key] = _inlined(cast(Schema, made[key]), definitions, within)
    for key in _SEVERAL:
        if key in made:
            made[key] = [_inlined(one, definitions, within) for one in cast("list[Schema]", made[key])]
    if "properties" in made:
        properties = cast("dict[str, Schema]", made["properties"])
        made["properties"] = {name: _inlined(one, definitions, within) for name, one in properties.items()}
    return made


def without_null(schema: Schema) -> Schema:
    """Return the schema of an optional parameter without `null`, which means that it is left out."""
    options = cast("list[Any]", schema.get("anyOf", []))
    kept = [one for one in options if one != {"type": "null"}]
    if len(kept) == len(options):
        return schema
    beside = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**kept[0], **beside} if len(kept) == 1 else {"anyOf": kept, **beside}
