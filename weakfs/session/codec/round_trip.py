"""Strict comparison of a saved value with what reading it returns: types count, and so does the sign of zero."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import attrs
from pyrsistent import PMap

from weakfs.messages import a_type
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import Table
from weakfs.session.slices.tags import fields_of, is_dataclass
from weakfs.short_repr import clipped_repr

Sequences = (tuple, list, Log)
Sets = (set, frozenset)


Alike = Callable[[Any, Any], bool]


def _never(one: Any, other: Any) -> bool:
    return False


def difference(one: Any, other: Any, where: str, alike: Alike = _never) -> str | None:
    """Return a description of the first difference between two values, or `None` if they are the same.

    If `alike` is true for two values of one type, they are taken as equal and not compared further.
    """
    if one is other:
        return None
    if type(one) is not type(other):
        return f"{where}: {a_type(one)} would come back as {a_type(other)}"
    if alike(one, other):
        return None
    if isinstance(one, Sequences):
        if len(one) != len(other):
            return f"{where}: {len(one)} items would come back as {len(other)}"
        items = zip(one, other, strict=True)
        return _first(difference(a, b, f"{where}[{index}]", alike) for index, (a, b) in enumerate(items))
    if isinstance(one, dict | PMap | MappingProxyType):
        if list(one) != list(other) and (not isinstance(one, PMap | Table) or set(one) != set(other)):
            return f"{where}: different keys would come back"
        return _first(difference(one[key], other[key], f"{where}.{key}", alike) for key in one)
    if attrs.has(type(one)) or is_dataclass(one):
        names = [field.name for field in fields_of(type(one))]
        return _first(difference(getattr(one, name), getattr(other, name), f"{where}.{name}", alike) for name in names)
    if isinstance(one, float):
        return None if repr(one) == repr(other) else f"{where}: {one!r} would come back as {other!r}"
    if isinstance(one, Sets):
        same = one == other and {*map(type, one)} == {*map(type, other)}
        return None if same else f"{where}: different items would come back"
    # Attributes that equality ignores, such as a deque's maxlen, show in the repr.
    return (
        None
        if one == other and repr(one) == repr(other)
        else f"{where}: {clipped_repr(one)} would come back as {clipped_repr(other)}"
    )


def _first(found: Any) -> str | None:
    return next((problem for problem in found if problem is not None), None)
