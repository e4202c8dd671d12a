"""The kinds of field types, which decide how values are converted to and from JSON."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import attrs

from weakfs.session.codec.blob_table import Json, Pool
from weakfs.session.codec.scalars import UNCONSTRAINED
from weakfs.session.slices.table import Table
from weakfs.session.slices.tags import fields_of, is_dataclass, tag_of

# Tagged values may be nested no deeper than this: orjson writes 254 levels, and reads more.
DEEPEST = 100

# The values of each pool, by type.
Pooled = Mapping[type, tuple[Pool, Sequence[Any]]]


def plain_key(key: str) -> str:
    """Return a key of a JSON object. Raises `ValueError` if it cannot be encoded as UTF-8."""
    key.encode()
    return key


def is_table(type_: Any) -> bool:
    return type_ is Table


def is_unconstrained(type_: Any) -> bool:
    """Return whether a type does not constrain its values: `Any`, `object`, a bare `tuple`, `list` or `dict`."""
    return any(type_ is unconstrained for unconstrained in UNCONSTRAINED)


def is_union(type_: Any) -> bool:
    return get_origin(type_) in (Union, UnionType)


def optional(union: Any) -> Any:
    """Return the one member of a union besides `None`, or `None` if there are several."""
    members = [member for member in get_args(union) if member is not type(None)]
    return members[0] if len(members) == 1 else None


def is_frozen_set(type_: Any) -> bool:
    return (get_origin(type_) or type_) in (set, frozenset)


def is_sequence(type_: Any) -> bool:
    return get_origin(type_) in (tuple, list, Sequence) and bool(get_args(type_))


def is_unconstrained_sequence(type_: Any) -> bool:
    return is_sequence(type_) and any(is_unconstrained(member) for member in get_args(type_))


def is_read_by_items(type_: Any) -> bool:
    """Return whether a sequence is read item by item here; cattrs before 25.2 reads a `Sequence` as a list."""
    return is_unconstrained_sequence(type_) or get_origin(type_) is Sequence


def is_unconstrained_mapping(type_: Any) -> bool:
    return is_plain_mapping(type_) and is_unconstrained(get_args(type_)[1])


def is_plain_mapping(type_: Any) -> bool:
    return get_origin(type_) in (dict, Mapping) and get_args(type_)[0] is str


def is_odd_mapping(type_: Any) -> bool:
    """Return whether a type is a dict whose keys are not text."""
    return get_origin(type_) is dict and get_args(type_)[0] is not str


def is_enum(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, Enum)


@lru_cache(maxsize=1024)
def classes_in(hint: Any) -> Mapping[str, type]:
    """Return the enums, attrs classes and dataclasses that a type mentions, by their tags."""
    if isinstance(hint, type) and not get_args(hint):
        has_fields = attrs.has(hint) or is_dataclass(hint)
        return {tag_of(hint): hint} if has_fields or is_enum(hint) else {}
    found: dict[str, type] = {}
    for member in get_args(hint):
        found.update(classes_in(member) if isinstance(member, Hashable) else {})
    return found


def is_checked(type_: Any) -> bool:
    """Return whether a type has a rule: `Annotated[str, rule]`, where `rule(value)` raises `ValueError`."""
    return get_origin(type_) is Annotated


def is_plain_attrs(pools: Mapping[type, Any]) -> Callable[[Any], bool]:
    def is_plain(type_: Any) -> bool:
        return isinstance(type_, type) and (attrs.has(type_) or is_dataclass(type_)) and type_ not in pools

    return is_plain


def has_keyword_only(type_: Any) -> bool:
    """Return whether a type is a dataclass with a field that can only be passed by name."""
    return is_dataclass(type_) and any(field.kw_only for field in fields_of(type_))


def brief(row: Json) -> str:
    """Return a shortened JSON value for a message."""
    text = repr(row)
    return text if len(text) <= 60 else text[:57] + "..."
