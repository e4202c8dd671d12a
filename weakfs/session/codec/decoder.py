"""JSON to values: cattrs with strict hooks, for the types of a registry; the counterpart of `encoder`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cached_property
from typing import Any, get_args, get_origin

from cattrs import (
    Converter,
    ForbiddenExtraKeysError,
    IterableValidationError,
    IterableValidationNote,
    override,
    transform_error,
)
from cattrs.gen import make_dict_structure_fn

from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.rope import Content
from weakfs.session.codec import field_types as kinds
from weakfs.session.codec.blob_table import NO_CONTENT, Json, Pool, whole_content
from weakfs.session.codec.expansion_limit import Expansion, unlimited
from weakfs.session.codec.field_types import DEEPEST, Pooled, brief
from weakfs.session.codec.scalars import ATOMS, read_atom, read_enum, simple_types
from weakfs.session.errors import MissingBlob, SessionFileError
from weakfs.session.slices.table import Table
from weakfs.session.slices.tags import fields_of, stored_name
from weakfs.session.slices.type_registry import Registry


class Reading:
    """Decodes JSON to values."""

    def __init__(
        self, registry: Registry, blobs: Sequence[Content], pools: Pooled, expansion: Expansion | None = None
    ) -> None:
        self.registry = registry
        self.blobs = blobs
        self._expansion = expansion or unlimited()
        self.pools = pools
        # Set once the slices are read: returns the table for a list of slice numbers.
        self.table: Callable[[Json], Table] = _no_table
        self._looks_for_place = False

    def close(self) -> None:
        """Drop the shared values. The objects here refer to one another and would stay until a garbage collection."""
        vars(self).clear()

    # Built on first use: a session of plain records and files needs neither, and they take milliseconds to build.
    @cached_property
    def _fast(self) -> Converter:
        return self._converter(detailed=False)

    @cached_property
    def _detailed(self) -> Converter:
        return self._converter(detailed=True)

    @property
    def _active(self) -> Converter:
        return self._detailed if self._looks_for_place else self._fast

    def value(self, row: Json, type_: type, where: str) -> Any:
        """Return the value of a known type. Raises `SessionFileError` naming the first invalid field."""
        try:
            if type_ in self.pools:
                return _from_pool(*self.pools[type_])(row, type_)
            return self._fast.structure(row, type_)
        except SessionFileError:
            raise
        except RecursionError:
            raise SessionFileError("the value is nested too deeply", where=where) from None
        except Exception:
            pass
        self._looks_for_place = True
        try:
            self._detailed.structure(row, type_)
        except SessionFileError:
            raise
        except Exception as error:
            problem = explained(error, where)
            raise (
                MissingBlob(problem.reason, where=problem.where) if NO_CONTENT in problem.reason else problem
            ) from None
        finally:
            self._looks_for_place = False
        raise SessionFileError("the value cannot be read", where=where)

    def any(self, row: Json, type_: object = Any, depth: int = 0) -> Any:
        """Return a value that is tagged with its own type."""
        if depth > DEEPEST:
            raise ValueError("the value is nested too deeply")
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
            tag = read_atom(row["type"])
            known = kinds.classes_in(type_).get(tag) if tag not in self.registry.by_tag else None
            return self._active.structure(row["value"], known or self.registry.shape(tag).cls)
        for pool, values in self.pools.values():
            if keys == {pool.key}:
                return _taken(values, row[pool.key], pool)
        return read_atom(row)

    def _converter(self, *, detailed: bool) -> Converter:
        converter = Converter(forbid_extra_keys=True, detailed_validation=detailed)
        for type_ in ATOMS:
            converter.register_structure_hook(type_, _exactly(type_))
        converter.register_structure_hook(bytes, lambda row, _: self._content(row, bytes))
        converter.register_structure_hook(Stored, lambda row, _: self._content(row, Stored))
        converter.register_structure_hook_func(kinds.is_enum, read_enum)
        # Before 26.1, cattrs looked for a hook of a base class first, and had one of its own for `Enum`.
        converter.register_structure_hook(Enum, read_enum)
        converter.register_structure_hook_func(kinds.is_frozen_set, self._set)
        converter.register_structure_hook_func(kinds.is_odd_mapping, self._mapping)
        converter.register_structure_hook_func(kinds.is_read_by_items, self._sequence)
        converter.register_structure_hook_func(kinds.is_unconstrained_mapping, self._text_mapping)
        converter.register_structure_hook_func(kinds.is_union, self._union)
        converter.register_structure_hook_func(kinds.is_unconstrained, self.any)
        converter.register_structure_hook_func(kinds.is_checked, self._checked)
        converter.register_structure_hook_func(kinds.is_table, lambda row, _: self.table(row))
        for type_, (_, from_text) in simple_types().items():
            converter.register_structure_hook(type_, _from_text(from_text))
        for type_, (pool, values) in self.pools.items():
            converter.register_structure_hook(type_, _from_pool(pool, values))
        converter.register_structure_hook_factory(
            kinds.is_plain_attrs(self.pools),
            lambda type_: make_dict_structure_fn(
                type_,
                converter,
                _cattrs_forbid_extra_keys=True,
                # Without this, cattrs 24.1 passes all fields of a dataclass by position.
                _cattrs_detailed_validation=detailed or kinds.has_keyword_only(type_),
                _cattrs_use_alias=False,
                **stored_names(type_),
            ),
        )
        return converter

    def _content(self, row: Json, type_: type) -> bytes | Stored:
        content = self._blob(row)
        if type(content) is not type_:
            place = "inside the file" if type_ is bytes else "outside the file"
            raise ValueError(f"expected a blob stored {place}, not {brief(row)}")
        return content

    def _blob(self, row: Json) -> bytes | Stored:
        if type(row) is not dict or row.keys() != {"blob"}:
            raise ValueError(f"expected a blob such as {{'blob': 0}}, not {brief(row)}")
        number = row["blob"]
        if type(number) is not int or not 0 <= number < len(self.blobs):
            raise ValueError(f"{NO_CONTENT} {number!r:.60}; the file holds {len(self.blobs)}")
        return whole_content(self.blobs[number], number, self._expansion)

    def _union(self, row: Json, union: Any) -> Any:
        member = kinds.optional(union)
        if member is not None:
            return None if row is None else self._active.structure(row, member)
        value = self.any(row, union)
        members = [get_origin(member) or member for member in get_args(union)]
        if type(value) not in members:
            raise ValueError(f"expected one of {', '.join(map(str, get_args(union)))}, not {brief(row)}")
        return value

    def _set(self, row: Json, type_: Any) -> Any:
        made = get_origin(type_) or type_
        return made(_distinct([self.any(item, type_) for item in _list(row)]))

    def _sequence(self, row: Json, type_: Any) -> Any:
        # cattrs takes items of an unconstrained type as they are; ours are tagged with their types.
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
                grouped = IterableValidationError("items", [error], type_)  # pyright: ignore[reportCallIssue]
                raise grouped from None
        return items if get_origin(type_) is list else tuple(items)

    def _text_mapping(self, row: Json, type_: Any) -> Any:
        if type(row) is not dict:
            raise ValueError(f"expected an object, not {brief(row)}")
        return {key: self.any(item) for key, item in row.items()}

    def _mapping(self, row: Json, type_: Any) -> Any:
        pairs = [(self.any(key, type_), self.any(item, type_)) for key, item in map(_list, _list(row))]
        _distinct([key for key, _ in pairs])
        return dict(pairs)

    def _checked(self, row: Json, type_: Any) -> Any:
        value = self._active.structure(row, get_args(type_)[0])
        for rule in get_args(type_)[1:]:
            if callable(rule):
                rule(value)
        return value


def stored_names(type_: type) -> dict[str, Any]:
    """Return the cattrs overrides for the fields of a class that have other names in session files."""
    return {
        field.name: override(rename=stored_name(field))
        for field in fields_of(type_)
        if stored_name(field) != field.name
    }


def explained(error: BaseException, where: str) -> SessionFileError:
    """Convert an exception of cattrs into one error with the path of the first problem."""
    problems = transform_error(error, path=where, format_exception=_reason)
    message, _, path = problems[0].rpartition(" @ ")
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return SessionFileError((message or problems[0]) + more, where=path or where)


def _reason(error: BaseException, type_: type | None) -> str:
    if isinstance(error, KeyError) and error.args:
        return f"the field {error.args[0]!r} is missing"
    if isinstance(error, ForbiddenExtraKeysError):
        return f"{error.cl.__name__} has no field {', '.join(map(repr, sorted(error.extra_fields)))}"
    return str(error) or type(error).__name__


def _exactly(expected: type) -> Callable[[Json, Any], Any]:
    def check(row: Json, type_: Any) -> Any:
        if type_ is not expected and kinds.is_enum(type_):
            # Text and number enums are instances of str and int too.
            return read_enum(row, type_)
        value = read_atom(row)
        # An integer is a valid float: it is kept as it is.
        if type(value) is not expected and not (expected is float and type(value) is int):
            raise ValueError(f"expected {ATOMS[expected]}, not {brief(row)}")
        return value

    return check


def _from_text(build: Callable[[str], Any]) -> Callable[[Json, Any], Any]:
    def read(row: Json, _: Any) -> Any:
        if type(row) is not str:
            raise ValueError(f"expected text, not {brief(row)}")
        return build(row)

    return read


def _list(row: Json) -> list[Json]:
    if type(row) is not list:
        raise ValueError(f"expected a list, not {brief(row)}")
    return row


def _distinct(items: list[Any]) -> list[Any]:
    """Check that a set or mapping of these items or keys would hold each of them, and would be equal to its copies."""
    if len(set(items)) < len(items):
        raise ValueError("an item or key occurs twice")
    if any(item != item for item in items):
        raise ValueError("an item or key is not a number, so it could not be found")
    return items


def _no_table(row: Json) -> Table:
    raise ValueError("a table of slices is not allowed here")


def _from_pool(pool: Pool, values: Sequence[Any]) -> Callable[[Json, Any], Any]:
    def structure(row: Json, _: Any) -> Any:
        if type(row) is not dict or row.keys() != {pool.key}:
            raise ValueError(f"expected a value such as {{{pool.key!r}: 0}}, not {brief(row)}")
        return _taken(values, row[pool.key], pool)

    return structure


def _taken(values: Sequence[Any], number: Json, pool: Pool) -> Any:
    if type(number) is not int or not 0 <= number < len(values):
        raise ValueError(f"there is no {pool.key} {number!r:.60} in {pool.section}; the file holds {len(values)}")
    return values[number]
