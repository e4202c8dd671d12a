"""Short `repr`s for tracebacks, debuggers and failing tests, whose cost does not grow with the value."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

from attrs import NOTHING
from pyrsistent import PMap

# How much of a value is shown: its characters, the items of each collection, and values inside values.
CHARACTERS = 300
ITEMS = 6
DEPTH = 4


def short_repr(value: object) -> str:
    """Return the `repr` of a value, or if that is long, its beginning and `...`."""
    return _shown(value, DEPTH)


def clipped_repr(value: object) -> str:
    """Return the first 60 characters of the `repr` of a caller's value, for a message.

    If that raises, as it does for a value that is nested very deeply, return the name of its class: the message must
    not be replaced by another error.
    """
    try:
        return f"{value!r:.60}"
    except Exception:
        return f"<{type(value).__name__} object>"


def fields_repr(self: Any) -> str:
    """Return the class and the fields of an instance: the `__repr__` of classes made by `define` and `frozen`."""
    return _instance(self, DEPTH)


def _shown(value: object, depth: int) -> str:
    kind = type(value)
    if isinstance(value, (str, bytes)):
        return repr(value) if len(value) <= CHARACTERS else f"{value[:CHARACTERS]!r}..."
    if isinstance(value, (dict, MappingProxyType, PMap)):
        text = f"{{{_items(value, depth)}}}"
    elif kind is list:
        text = f"[{_items(value, depth)}]"
    elif kind is tuple:
        text = f"({_items(value, depth)})"
    elif kind is set and value:
        text = f"{{{_items(value, depth)}}}"
    elif kind is frozenset and value:
        text = f"frozenset({{{_items(value, depth)}}})"
    elif kind.__repr__ is fields_repr:
        text = _instance(value, depth)
    else:
        text = repr(value)
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]}..."


def _items(values: Any, depth: int) -> str:
    if not depth:
        return "..." if values else ""
    first = list(islice(values.items() if isinstance(values, Mapping) else values, ITEMS))
    if isinstance(values, Mapping):
        shown = [f"{_shown(key, depth - 1)}: {_shown(item, depth - 1)}" for key, item in first]
    else:
        shown = [_shown(item, depth - 1) for item in first]
    if len(values) > ITEMS:
        shown.append(f"... {len(values) - ITEMS} more")
    comma = "," if type(values) is tuple and len(values) == 1 else ""
    return f"{', '.join(shown)}{comma}"


def _instance(value: Any, depth: int) -> str:
    fields = [one for one in type(value).__attrs_attrs__ if one.repr]
    shown = ", ".join(f"{one.name}={_field(value, one, depth - 1)}" for one in fields) if depth else "..."
    return f"{type(value).__qualname__.rpartition('>.')[2]}({shown})"


def _field(value: Any, one: Any, depth: int) -> str:
    held = getattr(value, one.name, NOTHING)
    return str(one.repr(held)) if callable(one.repr) and held is not NOTHING else _shown(held, depth)
