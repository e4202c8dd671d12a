"""The fields of a parameter class, the same for attrs classes and standard dataclasses."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast, get_type_hints

import attrs

from weakfs.class_decorators import frozen
from weakfs.messages import a_type

# A JSON Schema: of one parameter, or of all.
Schema = dict[str, object]


@frozen(eq=False)
class Field:
    """One field: its name in a call, the name of its `__init__` argument, its type, and its metadata.

    `default` is `None` unless the default is a constant; `required` means that there is neither a default nor a
    factory.
    """

    name: str
    init_name: str
    hint: object
    required: bool
    default: object
    metadata: Mapping[Any, Any]

    @property
    def for_models(self) -> bool:
        """Whether the field is shown to models."""
        return self.metadata.get("for_models", True) is not False


def has_fields(params: object) -> bool:
    """Return whether `params` is an attrs class or a dataclass."""
    return isinstance(params, type) and (attrs.has(params) or dataclasses.is_dataclass(params))


def fields_of(params: type) -> tuple[Field, ...]:
    """Return the fields that a call may give, in the order of the class.

    Raises `TypeError` if the class is neither an attrs class nor a dataclass.
    """
    if not has_fields(params):
        name = getattr(params, "__name__", a_type(params))
        raise TypeError(
            f"cannot use {name} for parameters: it declares no fields; decorate it with @attrs.frozen or @dataclass, "
            f"or make it a pydantic model"
        )
    hints = get_type_hints(params)
    return _of_attrs(params, hints) if attrs.has(params) else _of_dataclass(params, hints)


def _of_attrs(params: type, hints: Mapping[str, object]) -> tuple[Field, ...]:
    return tuple(
        Field(
            field.name,
            cast(str, field.alias),
            hints.get(field.name, object),
            field.default is attrs.NOTHING,
            None if field.default is attrs.NOTHING else field.default,
            field.metadata,
        )
        for field in attrs.fields(params)
        if field.init
    )


def _of_dataclass(params: Any, hints: Mapping[str, object]) -> tuple[Field, ...]:
    missing = dataclasses.MISSING
    return tuple(
        Field(
            field.name,
            field.name,
            hints.get(field.name, object),
            field.default is missing and field.default_factory is missing,
            None if field.default is missing else field.default,
            field.metadata,
        )
        for field in dataclasses.fields(params)
        if field.init
    )
