"""Values to JSON and back: cattrs with strict hooks, for the types of a registry.

Nothing is coerced: a number where text is expected is an error, in both directions. Bytes appear as
`{"blob": number}`, values of a pool as `{its key: number}`. Where the type does not say what a value is, the
value says it: `{"type": tag, "value": ...}`, `{"tuple": [...]}`, `{"map": {...}}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import attrs
import orjson
from cattrs import Converter, IterableValidationError, IterableValidationNote, transform_error
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from weakfs.session.atoms import AS_IT_IS, ATOMS, UNTOLD, plain_atom, read_atom, simple_types
from weakfs.session.errors import MissingBlob, SessionError, SessionFileError
from weakfs.session.pools import NO_CONTENT, Blobs, Json, Pool, PoolWriter
from weakfs.session.registry import Registry
from weakfs.session.rope import Rope
from weakfs.session.table import Table
from weakfs.session.verifying import difference

# A value that says itself what it is nests no deeper than this: orjson writes 254 levels, and reads more.
DEEPEST = 100

# The values of each pool, by type.
Pooled = Mapping[type, tuple[Pool, Sequence[Any]]]


class Writing:
    """Turns values into JSON, and collects what is held once.

    Every value is read back and compared before it is accepted, so that whatever a user's type does, a file
    holds what the session held or is not written.
    """

    def __init__(self, registry: Registry, table: Callable[[Table], Json], read_table: Callable[[Json], Table]) -> None:
        self.registry = registry
        self.blobs = Blobs()
        self.pools: dict[type, tuple[Pool, PoolWriter]] = {
            pool.cls: (pool, pool.writer(self.blobs)) for pool in registry.pools
        }
        self._converter = converter = Converter()
        for type_ in ATOMS:
            converter.register_unstructure_hook(type_, plain_atom)
        converter.register_unstructure_hook(bytes, self._blob)
        converter.register_unstructure_hook_func(_is_frozen_set, self._set)
        converter.register_unstructure_hook_func(_is_odd_mapping, self._pairs)
        converter.register_unstructure_hook_factory(_is_sequence, self._sequence)
        converter.register_unstructure_hook_factory(_is_plain_mapping, self._mapping)
        converter.register_unstructure_hook_factory(_is_union, self._union)
        converter.register_unstructure_hook_func(_is_untold, self.any)
        converter.register_unstructure_hook_func(_is_table, table)
        for type_, (to_text, _) in simple_types().items():
            converter.register_unstructure_hook(type_, to_text)
        for type_ in self.pools:
            converter.register_unstructure_hook(type_, self._pooled)
        converter.register_unstructure_hook_factory(
            _is_plain_attrs(self.pools),
            lambda type_: make_dict_unstructure_fn(type_, converter, _cattrs_use_alias=False),
        )
        values = {type_: (pool, writer.values) for type_, (pool, writer) in self.pools.items()}
        self._back = Reading(registry, self.blobs.contents, values)
        self._back.table = read_table

    def value(self, value: object, type_: type, where: str) -> Json:
        """Give a value of a type as JSON; `SessionError` that names the place if it could not be read back."""
        try:
            row = self._converter.unstructure(value, unstructure_as=type_)
            orjson.dumps(row, option=AS_IT_IS)
            found = difference(value, self._back.value(row, type_, where), where)
        except SessionFileError as error:
            raise SessionError(f"cannot save {error}") from None
        except NameError as error:
            raise SessionError(
                f"cannot save {where}: the types of {type_.__name__}'s fields cannot be resolved ({error}); define "
                f"them at the level of a module"
            ) from None
        except Exception as error:
            deep = isinstance(error, RecursionError) or "recursion" in str(error).lower()
            told = "it is nested too deeply" if deep else str(error) or type(error).__name__
            raise SessionError(f"cannot save {where}: {told}") from None
        if found is not None:
            raise SessionError(f"cannot save {found}; keep values of the types that the fields name")
        return row

    def any(self, value: object, depth: int = 0) -> Json:
        """Give any value as JSON that tells what it is; `SessionError` if it is of no registered type."""
        if depth > DEEPEST:
            raise SessionError("it is nested too deeply")
        if type(value) in ATOMS:
            return plain_atom(value)
        if type(value) is bytes:
            return self._blob(value)
        if type(value) in self.pools:
            return self._pooled(value)
        if type(value) is tuple:
            return {"tuple": [self.any(item, depth + 1) for item in value]}
        if type(value) is list:
            return [self.any(item, depth + 1) for item in value]
        if type(value) is dict and all(type(key) is str for key in value):
            return {"map": {plain_key(key): self.any(item, depth + 1) for key, item in value.items()}}
        shape = self.registry.by_type.get(type(value))
        if shape is None:
            name = type(value).__name__
            remedy = (
                f"register it with registry=Registry.standard().with_types({name})"
                if attrs.has(type(value))
                else "give the field a type that names it, or keep it in an attrs class that is registered"
            )
            raise SessionError(f"a value of type {name} does not say how it is to be kept; {remedy}")
        return {"type": shape.tag, "value": self._converter.unstructure(value, unstructure_as=shape.cls)}

    def _union(self, union: Any) -> Callable[[Any], Json]:
        member = _optional(union)
        if member is None:
            return self.any
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

    def _set(self, value: Any) -> Json:
        return sorted((self.any(item) for item in value), key=repr)

    def _pairs(self, value: Any) -> Json:
        return [[self.any(key), self.any(item)] for key, item in value.items()]

    def _blob(self, value: object) -> Json:
        if type(value) is not bytes:
            raise ValueError(f"bytes are expected, not {type(value).__name__}")
        return {"blob": self.blobs.number(value)}

    def _pooled(self, value: object) -> Json:
        pool, writer = self.pools[type(value)]
        return {pool.key: writer.number(value)}


class Reading:
    """Turns JSON back into values."""

    def __init__(self, registry: Registry, blobs: Sequence[bytes | Rope], pools: Pooled) -> None:
        self.registry = registry
        self.blobs = blobs
        self.pools = pools
        # Set once the slices are read: gives the table that a list of slice numbers stands for.
        self.table: Callable[[Json], Table] = _no_table
        self._fast = self._active = self._converter(detailed=False)
        self._detailed: Converter | None = None

    def value(self, row: Json, type_: type, where: str) -> Any:
        """Give the value of a known type; `SessionFileError` that names the field that is wrong."""
        try:
            return self._fast.structure(row, type_)
        except SessionFileError:
            raise
        except RecursionError:
            raise SessionFileError("this is nested too deeply", where=where) from None
        except Exception:
            pass
        if self._detailed is None:
            self._detailed = self._converter(detailed=True)
        self._active = self._detailed
        try:
            self._detailed.structure(row, type_)
        except SessionFileError:
            raise
        except Exception as error:
            told = explained(error, where)
            raise (MissingBlob(told.told, where=told.where) if NO_CONTENT in told.told else told) from None
        finally:
            self._active = self._fast
        raise SessionFileError("this cannot be read", where=where)

    def any(self, row: Json, type_: object = Any, depth: int = 0) -> Any:
        """Give a value that says itself what it is."""
        if depth > DEEPEST:
            raise ValueError("this is nested too deeply")
        if type(row) is list:
            return [self.any(item, type_, depth + 1) for item in row]
        if type(row) is not dict:
            return read_atom(row)
        keys = row.keys()
        if keys == {"blob"}:
            return self._blob(row)
        if keys == {"tuple"} and type(row["tuple"]) is list:
            return tuple(self.any(item, type_, depth + 1) for item in row["tuple"])
        if keys == {"map"} and type(row["map"]) is dict:
            return {key: self.any(item, type_, depth + 1) for key, item in row["map"].items()}
        if keys == {"type", "value"}:
            return self._active.structure(row["value"], self.registry.shape(read_atom(row["type"])).cls)
        for pool, values in self.pools.values():
            if keys == {pool.key}:
                return _taken(values, row[pool.key], pool)
        return read_atom(row)

    def _converter(self, *, detailed: bool) -> Converter:
        converter = Converter(forbid_extra_keys=True, detailed_validation=detailed)
        for type_ in ATOMS:
            converter.register_structure_hook(type_, _exactly(type_))
        converter.register_structure_hook(bytes, lambda row, _: self._blob(row))
        converter.register_structure_hook_func(_is_frozen_set, self._set)
        converter.register_structure_hook_func(_is_odd_mapping, self._mapping)
        converter.register_structure_hook_func(_is_untold_sequence, self._sequence)
        converter.register_structure_hook_func(_is_untold_mapping, self._text_mapping)
        converter.register_structure_hook_func(_is_union, self._union)
        converter.register_structure_hook_func(_is_untold, self.any)
        converter.register_structure_hook_func(_is_checked, self._checked)
        converter.register_structure_hook_func(_is_table, lambda row, _: self.table(row))
        for type_, (_, from_text) in simple_types().items():
            converter.register_structure_hook(type_, _from_text(from_text))
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
            raise ValueError(f"a content such as {{'blob': 0}} is expected, not {brief(row)}")
        number = row["blob"]
        if type(number) is not int or not 0 <= number < len(self.blobs):
            raise ValueError(f"{NO_CONTENT} {number!r:.60}; the file holds {len(self.blobs)}")
        content = self.blobs[number]
        return content.join() if isinstance(content, Rope) else content

    def _union(self, row: Json, union: Any) -> Any:
        member = _optional(union)
        if member is not None:
            return None if row is None else self._active.structure(row, member)
        value = self.any(row, union)
        members = [get_origin(member) or member for member in get_args(union)]
        if type(value) not in members:
            raise ValueError(f"one of {', '.join(map(str, get_args(union)))} is expected, not {brief(row)}")
        return value

    def _set(self, row: Json, type_: Any) -> Any:
        made = get_origin(type_) or type_
        return made(self.any(item) for item in _list(row))

    def _sequence(self, row: Json, type_: Any) -> Any:
        # cattrs takes items whose type says nothing as they are; ours say themselves what they are.
        members = get_args(type_)
        if get_origin(type_) is tuple and members[-1] is not ...:
            parts = zip(_list(row), members, strict=True)
            return tuple(self._active.structure(item, member) for item, member in parts)
        items: list[Any] = []
        for index, item in enumerate(_list(row)):
            try:
                items.append(self._active.structure(item, members[0]))
            except Exception as error:
                note = IterableValidationNote(f"item {index}", index, members[0])
                error.__notes__ = [*getattr(error, "__notes__", []), note]
                raise IterableValidationError("items", [error], type_) from None
        return tuple(items) if get_origin(type_) is tuple else items

    def _text_mapping(self, row: Json, type_: Any) -> Any:
        if type(row) is not dict:
            raise ValueError(f"an object is expected, not {brief(row)}")
        return {key: self.any(item) for key, item in row.items()}

    def _mapping(self, row: Json, type_: Any) -> Any:
        return {self.any(key): self.any(item) for key, item in map(_list, _list(row))}

    def _checked(self, row: Json, type_: Any) -> Any:
        value = self._active.structure(row, get_args(type_)[0])
        for rule in get_args(type_)[1:]:
            if callable(rule):
                rule(value)
        return value


def explained(error: BaseException, where: str) -> SessionFileError:
    """Turn what cattrs raises into one error with the path of the first problem."""
    told = transform_error(error, path=where, format_exception=_told)
    message, _, path = told[0].rpartition(" @ ")
    more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
    return SessionFileError((message or told[0]) + more, where=path or where)


def _told(error: BaseException, type_: type | None) -> str:
    if isinstance(error, KeyError) and error.args:
        return f"the field {error.args[0]!r} is missing"
    return str(error) or type(error).__name__


def plain_key(key: str) -> str:
    """Give a key of a JSON object; text without a UTF-8 form has no place there."""
    key.encode()
    return key


def _exactly(expected: type) -> Callable[[Json, Any], Any]:
    def check(row: Json, _: Any) -> Any:
        value = read_atom(row)
        # A whole number is a number: it is kept as it is.
        if type(value) is not expected and not (expected is float and type(value) is int):
            raise ValueError(f"{ATOMS[expected]} is expected, not {brief(row)}")
        return value

    return check


def _from_text(build: Callable[[str], Any]) -> Callable[[Json, Any], Any]:
    def read(row: Json, _: Any) -> Any:
        if type(row) is not str:
            raise ValueError(f"text is expected, not {brief(row)}")
        return build(row)

    return read


def _list(row: Json) -> list[Json]:
    if type(row) is not list:
        raise ValueError(f"a list is expected, not {brief(row)}")
    return row


def _no_table(row: Json) -> Table:
    raise ValueError("no table of slices can stand here")


def _is_table(type_: Any) -> bool:
    return bool(type_ == Table)


def _is_untold(type_: Any) -> bool:
    """Tell a type that says nothing of its values: `Any`, `object`, a bare `tuple`, `list` or `dict`."""
    return any(type_ is untold for untold in UNTOLD)


def _is_union(type_: Any) -> bool:
    return get_origin(type_) in (Union, UnionType)


def _optional(union: Any) -> Any:
    """Give the one type that a union has besides `None`, or `None` if there are several."""
    members = [member for member in get_args(union) if member is not type(None)]
    return members[0] if len(members) == 1 else None


def _is_frozen_set(type_: Any) -> bool:
    return (get_origin(type_) or type_) in (set, frozenset)


def _is_sequence(type_: Any) -> bool:
    return get_origin(type_) in (tuple, list) and bool(get_args(type_))


def _is_untold_sequence(type_: Any) -> bool:
    return _is_sequence(type_) and any(_is_untold(member) for member in get_args(type_))


def _is_untold_mapping(type_: Any) -> bool:
    return _is_plain_mapping(type_) and _is_untold(get_args(type_)[1])


def _is_plain_mapping(type_: Any) -> bool:
    return get_origin(type_) is dict and get_args(type_)[0] is str


def _is_odd_mapping(type_: Any) -> bool:
    """Tell a dict whose keys are not text."""
    return get_origin(type_) is dict and get_args(type_)[0] is not str


def _is_checked(type_: Any) -> bool:
    """Tell a type with rules of its own: `Annotated[str, rule]`, where `rule(value)` raises `ValueError`."""
    return get_origin(type_) is Annotated


def _is_plain_attrs(pools: Mapping[type, Any]) -> Callable[[Any], bool]:
    def is_plain(type_: Any) -> bool:
        return isinstance(type_, type) and attrs.has(type_) and type_ not in pools

    return is_plain


def _from_pool(pool: Pool, values: Sequence[Any]) -> Callable[[Json, Any], Any]:
    def structure(row: Json, _: Any) -> Any:
        if type(row) is not dict or row.keys() != {pool.key}:
            raise ValueError(f"a value such as {{{pool.key!r}: 0}} is expected, not {brief(row)}")
        return _taken(values, row[pool.key], pool)

    return structure


def _taken(values: Sequence[Any], number: Json, pool: Pool) -> Any:
    if type(number) is not int or not 0 <= number < len(values):
        raise ValueError(f"there is no {pool.key} {number!r:.60} in {pool.section}; the file holds {len(values)}")
    return values[number]


def brief(row: Json) -> str:
    """Show a piece of JSON in a message."""
    text = repr(row)
    return text if len(text) <= 60 else text[:57] + "..."
