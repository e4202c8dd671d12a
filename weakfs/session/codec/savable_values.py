"""Acceptance of values: checks that a session file can hold a value before it enters a session.

Mutable values are copied. The proof is the encoding itself: the value is written, read back and compared, as it would
be when saving, except that blobs and pooled values (directories) stand for themselves. Values made of atoms only, or of
tuples and frozen classes of atoms, are known to be safe by their types and skip this proof: see
`weakfs.session.codec.type_check`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import is_dataclass
from enum import Enum
from functools import lru_cache
from threading import RLock
from typing import Any, cast, get_args, get_type_hints

import attrs
from pyrsistent import PMap

from weakfs.messages import a_type
from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.rope import Rope
from weakfs.session.codec.blob_table import Json
from weakfs.session.codec.encoder import Writing
from weakfs.session.codec.field_types import DEEPEST
from weakfs.session.codec.scalars import ATOMS, simple_types
from weakfs.session.codec.type_check import is_frozen
from weakfs.session.errors import SessionError
from weakfs.session.slices.log import Log
from weakfs.session.slices.table import EMPTY_TABLE, Table
from weakfs.session.slices.tags import fields_of
from weakfs.session.slices.type_registry import Registry
from weakfs.short_repr import clipped_repr

# Immutable types whose values contain nothing else.
SIMPLE: frozenset[type] = frozenset({*ATOMS, bytes, Stored, Rope})


def accepted_value(registry: Registry, value: Any, what: str) -> Any:
    """Return `value` if a file can hold it and it is immutable, else a private copy of it.

    Raises `TypeError` if no file can hold it. The message begins with `what` and names the place inside the value.
    """
    trial = _trial(registry.pools)
    try:
        copy = trial.written_and_read(registry, value)
    except SessionError as error:
        raise TypeError(f"{what}: {_explained(trial, registry, value, error)}") from None
    return value if is_immutable(value, registry) else copy


def is_immutable(value: Any, registry: Registry) -> bool:
    """Return whether a value is deeply immutable: made of atoms, tuples and frozen classes."""
    type_ = type(value)
    if type_ in SIMPLE or isinstance(value, Enum | PMap | Table | Log) or type_ in simple_types():
        return True
    if isinstance(value, tuple | frozenset):
        items = cast("tuple[Any, ...]", value)
        return all(is_immutable(item, registry) for item in items)
    if any(type_ is pool.cls for pool in registry.pools):
        return True
    return is_frozen(type_) and all(is_immutable(getattr(value, field.name), registry) for field in fields_of(type_))


class _Held:
    """A stand-in for the blobs, pools and tables of a file: holds each value as it is, by identity."""

    def __init__(self) -> None:
        self.contents: list[Any] = []
        self._numbers: dict[int, int] = {}

    @property
    def values(self) -> list[Any]:
        return self.contents

    def number(self, value: Any, parent: Any = None) -> int:
        number = self._numbers.setdefault(id(value), len(self.contents))
        if number == len(self.contents):
            self.contents.append(value)
        return number

    def clear(self) -> None:
        self.contents.clear()
        self._numbers.clear()


class _Trial(Writing):
    """A writer that reads back what it writes.

    One serves all registries with the same pools: it takes milliseconds to build.
    """

    def __init__(self, pools: tuple[Any, ...]) -> None:
        self._held = held = _Held()
        self._lock = RLock()
        self._depth = 0
        self.blobs = cast(Any, held)
        self.pools = {pool.cls: (pool, cast(Any, held)) for pool in pools}
        self._table = held.number
        self._read_table = self._table_of

    def _table_of(self, row: Json) -> Table:
        return cast(Table, self._held.contents[row]) if type(row) is int else EMPTY_TABLE

    def written_and_read(self, registry: Registry, value: Any) -> Any:
        """Return a value as it comes back from a file. Raises `SessionError` if it does not come back equal."""
        with self._lock:
            before, self._depth = self._depth, self._depth + 1
            self.registry = registry
            self._back.registry = registry
            try:
                return self.written(value, type(value), "$")[1]
            finally:
                self._depth = before
                if not before:
                    self._held.clear()

    def problem(self, value: Any, hint: Any, where: str, error: SessionError) -> SessionError:
        """Return the error for the innermost part of a value that cannot be written, with its place."""
        for suffix, part, its_hint in _parts(value, hint):
            try:
                self.written(part, its_hint, where + suffix)
            except SessionError as inner:
                return self.problem(part, its_hint, where + suffix, inner)
        return error


@lru_cache(maxsize=8)
def _trial(pools: tuple[Any, ...]) -> _Trial:
    return _Trial(pools)


def _explained(trial: _Trial, registry: Registry, value: Any, error: SessionError) -> str:
    found = next(_unknown(registry, value, "$"), None)
    if found is None:
        message = str(error)
        if message.startswith("cannot save $: ") and "nested" not in message:
            message = str(trial.problem(value, type(value), "$", error))
        return message.removeprefix("cannot save ")
    where, odd = found
    return (
        f"{where} is {clipped_repr(odd)}, {a_type(odd)}, which a session file cannot hold; keep text, numbers, bytes, "
        f"enums, or attrs classes and dataclasses there"
    )


def _parts(value: Any, hint: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parts of a value, each with its place and its declared type."""
    type_ = type(value)
    arguments = [argument for argument in get_args(hint) if argument is not ...]
    if isinstance(value, tuple | list):
        hints = arguments if len(arguments) == len(cast("tuple[Any, ...]", value)) else [*arguments[:1], Any][:1]
        for index, item in enumerate(cast("tuple[Any, ...]", value)):
            yield f"[{index}]", item, hints[min(index, len(hints) - 1)]
    elif isinstance(value, dict):
        named: dict[Any, Any] = value
        for key, item in named.items():
            yield f".{key}", item, arguments[1] if len(arguments) == 2 else Any
    elif attrs.has(type_) or is_dataclass(type_):
        with suppress(NameError):
            hints_of = get_type_hints(type_, include_extras=True)
            for field in fields_of(type_):
                if field.init:
                    yield f".{field.name}", getattr(value, field.name), hints_of.get(field.name, Any)


def _unknown(registry: Registry, value: Any, where: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the values inside a value whose types no file can hold, with their places."""
    type_ = type(value)
    if depth > DEEPEST or type_ in SIMPLE or type_ in simple_types() or isinstance(value, Enum | PMap | Table | Log):
        return
    if any(type_ is pool.cls for pool in registry.pools):
        return
    if isinstance(value, tuple | list | deque | set | frozenset):
        for index, item in enumerate(cast("tuple[Any, ...]", value)):
            yield from _unknown(registry, item, f"{where}[{index}]", depth + 1)
    elif isinstance(value, Mapping):
        named: Mapping[Any, Any] = value
        for key, item in named.items():
            place = f"{where}.{key}" if isinstance(key, str) else f"{where}[{clipped_repr(key)}]"
            yield from _unknown(registry, key, place, depth + 1)
            yield from _unknown(registry, item, place, depth + 1)
    elif attrs.has(type_) or is_dataclass(type_):
        for field in fields_of(type_):
            yield from _unknown(registry, getattr(value, field.name, None), f"{where}.{field.name}", depth + 1)
    else:
        yield where, value
