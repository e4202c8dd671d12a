"""Tags: the names that classes and their fields have in records and files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import attrs

C = TypeVar("C", bound=type)

# The key in a field's metadata for the name that the field has in session files, if that is not its own name.
STORED_AS = "weakfs.stored_as"


def event(tag: str, *, numbers: Sequence[str] = ()) -> Callable[[C], C]:
    """Mark a class with the tag that identifies it in records and files.

    `numbers` names the fields that hold record numbers: a number, a tuple of numbers, or `None`. The records of a fork
    are renumbered when it is merged, and so are those of a transaction if others changed the session. These fields are
    updated to match, in the events of the merged records and in the values of slices, so that each still refers to the
    same record. Only the event's own fields and those of the slice's value are updated: a number inside the value of
    such a field stays as it is, so keep record numbers at the top level. Registering the class raises `ValueError` if
    it lacks one of these fields.

        @event("agent/step_done", numbers=("first_seq",))
        @frozen
        class StepDone:
            first_seq: int
    """

    if not isinstance(tag, str) or not tag:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"cannot use {tag!r:.60} as a tag; pass text, as in @event('shop/task_added')")

    def mark(cls: C) -> C:
        cls.__tag__ = tag  # type: ignore[attr-defined]  # attrs' slotted classes take class attributes
        if numbers:
            cls.__record_numbers__ = tuple(numbers)  # type: ignore[attr-defined]  # as above
        return cls

    return mark


def tag_of(cls: type) -> str:
    """Return the tag that a class was marked with, else its name."""
    return cast(str, cls.__dict__.get("__tag__", cls.__name__))


def stored_name(field: Any) -> str:
    """Return the name of a field in session files."""
    return cast(str, field.metadata.get(STORED_AS, field.name))


def fields_of(type_: type) -> Sequence[Any]:
    """Return the fields of an attrs class or a dataclass."""
    if attrs.has(type_):
        return cast("Sequence[Any]", attrs.fields(type_))
    from dataclasses import fields

    return fields(type_)


def is_dataclass(value: object) -> bool:
    """Return whether a class is a dataclass, or a value an instance of one, without importing `dataclasses`."""
    return hasattr(value if isinstance(value, type) else type(value), "__dataclass_fields__")
