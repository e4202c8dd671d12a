"""Values to JSON and back: cattrs with strict hooks, for the types of a registry.

Nothing is coerced: a number where text is expected is an error. Bytes appear as `{"blob": number}`, values of a
pool as `{its key: number}`. Where the type does not say what a value is, it carries its tag: `{"type", "value"}`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import attrs
from cattrs import Converter, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from weakfs.session.errors import SessionError, SessionFileError
from weakfs.session.pools import Blobs, Json, Pool, PoolWriter, blob_at
from weakfs.session.registry import Registry
from weakfs.session.rope import Rope
from weakfs.session.table import Table

ATOMS: tuple[type, ...] = (str, int, bool, float, type(None))


class Writing:
    """Turns values into JSON, and collects what is held once."""

    def __init__(self, registry: Registry, table: Callable[[Table], Json]) -> None:
        self.registry = registry
        self.blobs = Blobs()
        self.pools: dict[type, tuple[Pool, PoolWriter]] = {
            pool.cls: (pool, pool.writer(self.blobs)) for pool in registry.pools
        }
        self.converter = converter = Converter(omit_if_default=True, unstruct_collection_overrides={})
        converter.register_unstructure_hook(bytes, self._blob)
        converter.register_unstructure_hook_func(_is_union, self.any)
        converter.register_unstructure_hook_func(lambda type_: type_ is Any, self.any)
        converter.register_unstructure_hook_func(_is_table, table)
        for type_ in self.pools:
            converter.register_unstructure_hook(type_, self._pooled)
        converter.register_unstructure_hook_factory(
            _is_plain_attrs(self.pools),
            lambda type_: make_dict_unstructure_fn(
                type_, converter, _cattrs_omit_if_default=True, _cattrs_use_alias=False
            ),
        )

    def value(self, value: object) -> Json:
        """Give a value of a registered type as JSON."""
        return self.converter.unstructure(value)

    def any(self, value: object) -> Json:
        """Give any value as JSON that tells what it is; `SessionError` if it is of no registered type."""
        if value is None or type(value) in (str, int, bool, float):
            return value
        if type(value) is bytes:
            return self._blob(value)
        if type(value) in self.pools:
            return self._pooled(value)
        if type(value) is tuple:
            return {"tuple": [self.any(item) for item in value]}
        if type(value) is list:
            return [self.any(item) for item in value]
        if type(value) is dict and all(type(key) is str for key in value):
            return {"map": {key: self.any(item) for key, item in value.items()}}
        shape = self.registry.by_type.get(type(value))
        if shape is None:
            raise SessionError(
                f"cannot save a value of type {type(value).__name__}: it is not registered; pass "
                f"registry=Registry.standard().with_types({type(value).__name__}) to the session"
            )
        return {"type": shape.tag, "value": self.value(value)}

    def _blob(self, value: bytes) -> Json:
        return {"blob": self.blobs.number(value)}

    def _pooled(self, value: object) -> Json:
        pool, writer = self.pools[type(value)]
        return {pool.key: writer.number(value)}


class Reading:
    """Turns JSON back into values."""

    def __init__(self, registry: Registry, blobs: list[bytes | Rope], sections: dict[str, Json]) -> None:
        self.registry = registry
        self.blobs = blobs
        self.pools = {pool.cls: (pool, pool.read(sections.get(pool.section, []), blobs)) for pool in registry.pools}
        # Set once the slices are read: gives the table that a list of slice numbers stands for.
        self.table: Callable[[Json], Table] = _no_table
        self._fast = self._converter(detailed=False)
        self._detailed: Converter | None = None

    def value(self, row: Json, type_: type, where: str) -> Any:
        """Give the value of a known type; `SessionFileError` that names the field that is wrong."""
        try:
            return self._fast.structure(row, type_)
        except SessionFileError:
            raise
        except Exception:
            pass
        if self._detailed is None:
            self._detailed = self._converter(detailed=True)
        try:
            self._detailed.structure(row, type_)
        except SessionFileError:
            raise
        except Exception as error:
            raise explained(error, where) from None
        raise SessionFileError("this cannot be read", where=where)

    def any(self, row: Json, type_: object = Any) -> Any:
        """Give a value that says itself what it is."""
        if row is None or type(row) in (str, int, bool, float):
            return row
        if type(row) is list:
            return [self.any(item) for item in row]
        if type(row) is dict:
            keys = row.keys()
            if keys == {"blob"}:
                return self._blob(row)
            if keys == {"tuple"} and type(row["tuple"]) is list:
                return tuple(self.any(item) for item in row["tuple"])
            if keys == {"map"} and type(row["map"]) is dict:
                return {key: self.any(item) for key, item in row["map"].items()}
            if keys == {"type", "value"}:
                return self._fast.structure(row["value"], self.registry.shape(_text(row["type"])).cls)
            for pool, values in self.pools.values():
                if keys == {pool.key}:
                    return _taken(values, row[pool.key], pool)
        raise ValueError("a value with its type is expected")

    def _converter(self, *, detailed: bool) -> Converter:
        converter = Converter(forbid_extra_keys=True, detailed_validation=detailed)
        for type_ in ATOMS:
            converter.register_structure_hook(type_, _exactly(type_))
        converter.register_structure_hook(float, _number)
        converter.register_structure_hook(bytes, lambda row, _: self._blob(row))
        converter.register_structure_hook_func(lambda type_: type_ is Any, self.any)
        converter.register_structure_hook_func(_is_union, self._union)
        converter.register_structure_hook_func(_is_checked_text, _checked_text)
        converter.register_structure_hook_func(_is_table, lambda row, _: self.table(row))
        for type_, (pool, values) in self.pools.items():
            converter.register_structure_hook(type_, _from_pool(pool, values))
        converter.register_structure_hook_factory(
            _is_plain_attrs(self.pools),
            lambda type_: make_dict_structure_fn(
                type_,
                converter,
                _cattrs_forbid_extra_keys=True,
                _cattrs_detailed_validation=detailed,
                _cattrs_use_alias=False,
            ),
        )
        return converter

    def _blob(self, row: Json) -> bytes:
        if type(row) is not dict or row.keys() != {"blob"}:
            raise ValueError(f"a content such as {{'blob': 0}} is expected, not {_brief(row)}")
        content = blob_at(self.blobs, row["blob"], "$.blobs")
        return content.join() if isinstance(content, Rope) else content

    def _union(self, row: Json, union: Any) -> Any:
        members = get_args(union)
        if row is None and type(None) in members:
            return None
        others = [member for member in members if member is not type(None)]
        if len(others) == 1:
            return self._fast.structure(row, others[0])
        value = self.any(row, union)
        if not any(type(value) is member for member in others):
            raise ValueError(f"one of {', '.join(map(str, others))} is expected, not {_brief(row)}")
        return value


def explained(error: BaseException, where: str) -> SessionFileError:
    """Turn what cattrs raises into one error with the path of the first problem."""
    told = transform_error(error, path=where, format_exception=_told)
    message, _, path = told[0].rpartition(" @ ")
    more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
    return SessionFileError((message or told[0]) + more, where=path or where)


def _told(error: BaseException, type_: type | None) -> str:
    if isinstance(error, KeyError):
        return f"the field {error.args[0]!r} is missing"
    return str(error) or type(error).__name__


def _exactly(expected: type) -> Callable[[Json, Any], Any]:
    def check(row: Json, _: Any) -> Any:
        if type(row) is not expected:
            raise ValueError(f"{_NAMES.get(expected, expected.__name__)} is expected, not {_brief(row)}")
        return row

    return check


_NAMES = {str: "text", int: "a whole number", bool: "true or false", type(None): "null"}


def _number(row: Json, _: Any) -> float:
    if type(row) not in (int, float):
        raise ValueError(f"a number is expected, not {_brief(row)}")
    return float(row)


def _text(row: Json) -> str:
    if type(row) is not str:
        raise ValueError(f"text is expected, not {_brief(row)}")
    return row


def _no_table(row: Json) -> Table:
    raise ValueError("no table of slices can stand here")


def _is_table(type_: Any) -> bool:
    return bool(type_ == Table)


def _is_union(type_: Any) -> bool:
    return get_origin(type_) in (Union, UnionType)


def _is_checked_text(type_: Any) -> bool:
    """Tell text with a rule of its own: `Annotated[str, rule]`, where `rule(text)` raises `ValueError`."""
    return get_origin(type_) is Annotated and get_args(type_)[0] is str


def _checked_text(row: Json, type_: Any) -> str:
    text = _text(row)
    for rule in get_args(type_)[1:]:
        if callable(rule):
            rule(text)
    return text


def _is_plain_attrs(pools: dict[type, Any]) -> Callable[[Any], bool]:
    def is_plain(type_: Any) -> bool:
        return isinstance(type_, type) and attrs.has(type_) and type_ not in pools

    return is_plain


def _from_pool(pool: Pool, values: Any) -> Callable[[Json, Any], Any]:
    def structure(row: Json, _: Any) -> Any:
        if type(row) is not dict or row.keys() != {pool.key}:
            raise ValueError(f"a value such as {{{pool.key!r}: 0}} is expected, not {_brief(row)}")
        return _taken(values, row[pool.key], pool)

    return structure


def _taken(values: Any, number: Json, pool: Pool) -> Any:
    if type(number) is not int or not 0 <= number < len(values):
        raise ValueError(f"there is no {pool.key} {number!r} in {pool.section}; the file holds {len(values)}")
    return values[number]


def _brief(row: Json) -> str:
    text = repr(row)
    return text if len(text) <= 60 else text[:57] + "..."
