"""Values to JSON: cattrs with strict hooks, for the types of a registry.

Nothing is coerced. Bytes appear as `{"blob": number}`, values of a pool as `{its key: number}`. Where the declared
type does not determine the value's type, the value is tagged: `{"type": tag, "value": ...}`, `{"tuple": [...]}`,
`{"map": {...}}`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cached_property
from typing import Any, get_args, get_origin

import attrs
import orjson
from cattrs import Converter
from cattrs.gen import make_dict_unstructure_fn

from weakfs.session.blobs.blob import ContentSource, Stored
from weakfs.session.codec import field_types as kinds
from weakfs.session.codec.blob_table import Blobs, Json, Pool, PoolWriter
from weakfs.session.codec.decoder import Reading, stored_names
from weakfs.session.codec.field_types import DEEPEST, plain_key
from weakfs.session.codec.round_trip import difference
from weakfs.session.codec.scalars import ATOMS, enum_row, plain_atom, simple_types
from weakfs.session.errors import MissingBlob, SessionError, SessionFileError
from weakfs.session.slices.table import Table
from weakfs.session.slices.tags import tag_of
from weakfs.session.slices.type_registry import Registry

# Keep orjson from silently converting these types.
AS_IT_IS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS


class Writing:
    """Encodes values as JSON and collects the shared ones, which are stored once.

    Every value is read back and compared before it is accepted: whatever a user's type does, either the file holds
    what the session held or nothing is written.
    """

    def __init__(
        self,
        registry: Registry,
        table: Callable[[Table], Json],
        read_table: Callable[[Json], Table],
        *,
        embed: bool = False,
        others: Sequence[ContentSource] = (),
    ) -> None:
        self.registry = registry
        self.blobs = Blobs(embed=embed, others=others)
        self.pools: dict[type, tuple[Pool, PoolWriter]] = {
            pool.cls: (pool, pool.writer(self.blobs)) for pool in registry.pools
        }
        self._table, self._read_table = table, read_table

    def close(self) -> None:
        """Drop what was collected. The objects here refer to one another and would stay until a garbage collection."""
        vars(self).clear()

    # Built on first use: a session of plain records and files needs neither, and they take milliseconds to build.
    @cached_property
    def _converter(self) -> Converter:
        converter = Converter()
        for type_ in ATOMS:
            converter.register_unstructure_hook(type_, plain_atom)
        converter.register_unstructure_hook(bytes, self._blob)
        converter.register_unstructure_hook(Stored, self._stored)
        converter.register_unstructure_hook_func(kinds.is_enum, enum_row)
        converter.register_unstructure_hook_factory(kinds.is_frozen_set, self._set)
        converter.register_unstructure_hook_factory(kinds.is_odd_mapping, self._pairs)
        converter.register_unstructure_hook_factory(kinds.is_sequence, self._sequence)
        converter.register_unstructure_hook_factory(kinds.is_plain_mapping, self._mapping)
        converter.register_unstructure_hook_factory(kinds.is_union, self._union)
        converter.register_unstructure_hook_func(kinds.is_unconstrained, self.any)
        converter.register_unstructure_hook_func(kinds.is_table, self._table)
        for type_, (to_text, _) in simple_types().items():
            converter.register_unstructure_hook(type_, to_text)
        for type_ in self.pools:
            converter.register_unstructure_hook(type_, self._pooled)
        converter.register_unstructure_hook_factory(
            kinds.is_plain_attrs(self.pools),
            lambda type_: make_dict_unstructure_fn(type_, converter, _cattrs_use_alias=False, **stored_names(type_)),
        )
        return converter

    @cached_property
    def _back(self) -> Reading:
        values = {type_: (pool, writer.values) for type_, (pool, writer) in self.pools.items()}
        back = Reading(self.registry, self.blobs.contents, values)
        back.table = self._read_table
        return back

    def value(self, value: object, type_: type, where: str) -> Json:
        """Return a value of a type as JSON. Raises `SessionError` naming the place if it could not be read back."""
        return self.written(value, type_, where)[0]

    def written(self, value: object, type_: type, where: str) -> tuple[Json, Any]:
        """Return a value of a type as JSON, and as it is read back. Raises as `value` does."""
        try:
            if type_ in self.pools and type(value) is type_:
                return self._pooled(value), value
            row = self._converter.unstructure(value, unstructure_as=type_)
            # Through JSON text, which has fewer types than a row may hold.
            text = orjson.dumps(row, option=AS_IT_IS)
            back = self._back.value(orjson.loads(text), type_, where)
            found = difference(value, back, where, self._are_one)
        except SessionFileError as error:
            if isinstance(error, MissingBlob) and error.digest is not None:
                raise
            raise SessionError(f"cannot save {error}") from None
        except NameError as error:
            raise SessionError(
                f"cannot save {where}: the type of a field cannot be resolved ({error}); define it at module level"
            ) from None
        except Exception as error:
            deep = isinstance(error, RecursionError) or "recursion" in str(error).lower()
            cause = "it is nested too deeply" if deep else str(error) or type(error).__name__
            raise SessionError(f"cannot save {where}: {cause}") from None
        if found is not None:
            raise SessionError(f"cannot save {found}; keep values of the types that the fields declare")
        return row, back

    def _are_one(self, one: object, other: object) -> bool:
        """Return whether two values of a pool are stored as one."""
        pooled = self.pools.get(type(one))
        return pooled is not None and bool(pooled[1].number(one) == pooled[1].number(other))

    def any(self, value: object, depth: int = 0, hint: Any = Any) -> Json:
        """Return any value as JSON tagged with its type.

        Raises `SessionError` if its type is neither registered nor one that `hint` names.
        """
        if depth > DEEPEST:
            raise SessionError("it is nested too deeply")
        if type(value) in ATOMS:
            return plain_atom(value)
        if type(value) is bytes:
            return self._blob(value)
        if type(value) is Stored:
            return self._stored(value)
        if type(value) in self.pools:
            return self._pooled(value)
        if type(value) is tuple:
            return {"tuple": [self.any(item, depth + 1, hint) for item in value]}
        if type(value) is list:
            return [self.any(item, depth + 1, hint) for item in value]
        if type(value) is dict and all(type(key) is str for key in value):
            return {"map": {plain_key(key): self.any(item, depth + 1, hint) for key, item in value.items()}}
        shape = self.registry.by_type.get(type(value))
        if shape is None:
            tag = tag_of(type(value))
            if kinds.classes_in(hint).get(tag) is type(value):
                return {"type": tag, "value": self._converter.unstructure(value, unstructure_as=type(value))}
            name = type(value).__name__
            remedy = (
                f"register it with registry=Registry.standard().with_types({name})"
                if attrs.has(type(value)) or is_dataclass(value) or isinstance(value, Enum)
                else "annotate the field with a type that names it, or keep it in a registered attrs class"
            )
            raise SessionError(f"cannot store a value of type {name} in an untyped field; {remedy}")
        return {"type": shape.tag, "value": self._converter.unstructure(value, unstructure_as=shape.cls)}

    def _union(self, union: Any) -> Callable[[Any], Json]:
        member = kinds.optional(union)
        if member is None:
            return self._of_many(union)
        write = self._writer(member)
        return lambda value: None if value is None else write(value)

    def _writer(self, type_: Any) -> Callable[[Any], Json]:
        return lambda value: self._converter.unstructure(value, unstructure_as=type_)

    def _sequence(self, type_: Any) -> Callable[[Any], Json]:
        members = get_args(type_)
        if get_origin(type_) is tuple and members[-1] is not ...:
            writers = [self._writer(member) for member in members]
            return lambda values: [write(value) for write, value in zip(writers, values, strict=True)]
        write = self._writer(members[0])
        return lambda values: [write(value) for value in values]

    def _mapping(self, type_: Any) -> Callable[[Any], Json]:
        write = self._writer(get_args(type_)[1])
        return lambda values: {plain_key(key): write(value) for key, value in values.items()}

    def _of_many(self, hint: Any) -> Callable[[Any], Json]:
        return lambda value: self.any(value, 0, hint)

    def _set(self, type_: Any) -> Callable[[Any], Json]:
        write = self._of_many(type_)
        # Sorted before they are written, so that blob numbers are deterministic.
        return lambda values: [write(item) for item in sorted(values, key=repr)]

    def _pairs(self, type_: Any) -> Callable[[Any], Json]:
        write = self._of_many(type_)
        return lambda values: [[write(key), write(item)] for key, item in values.items()]

    def _blob(self, value: object) -> Json:
        if type(value) is not bytes:
            raise ValueError(f"expected bytes, not {type(value).__name__}")
        return {"blob": self.blobs.number(value)}

    def _stored(self, value: object) -> Json:
        if type(value) is not Stored:
            raise ValueError(f"expected a blob stored outside the file, not {type(value).__name__}")
        return {"blob": self.blobs.number(value)}

    def _pooled(self, value: object) -> Json:
        pool, writer = self.pools[type(value)]
        return {pool.key: writer.number(value)}
