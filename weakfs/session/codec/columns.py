"""Columnar reading and writing of records whose events hold only atoms: one field at a time.

Going through 10,000 records one by one costs 5 to 8 µs of checks for each. Going through them one field at a time
needs the checks only once per field, at the speed of `map`. Records that do not fit, or are malformed, take the
slow path, which can say what is wrong (`weakfs.session.codec.decoder`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice, repeat
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import attrs

from weakfs.class_decorators import frozen
from weakfs.session.blobs.blob import Stored
from weakfs.session.blobs.rope import Content, Rope
from weakfs.session.codec.blob_table import Blobs, Json, whole_content
from weakfs.session.codec.expansion_limit import Expansion
from weakfs.session.codec.scalars import LARGEST, SMALLEST, is_text
from weakfs.session.slices.tags import stored_name
from weakfs.session.slices.type_registry import Shape

# The columns of tuples of fields.
Fields = Sequence[Sequence[Any]]

REQUIRED = object()
# Slices with at least this many values are read and written one field at a time.
MANY = 16

# The two types that a blob field may hold.
CONTENTS: frozenset[type] = frozenset({bytes, Stored})


@frozen(eq=False)
class Column:
    """One field: its types, its default, and whether its text follows a rule.

    `is_blob` is true if it holds blobs, `is_mixed` if it holds blobs or atoms.
    """

    name: str
    types: frozenset[type]
    default: object
    is_blob: bool
    is_mixed: bool
    rules: tuple[Any, ...]

    @property
    def parts(self) -> tuple[Column, ...]:
        """The columns of the items of a field."""
        return (self,)

    def write_all(self, values: Sequence[Any], blobs: Blobs) -> Json:
        """Return the values as one JSON value: blobs as `{"blobs": [...]}`, others as a list."""
        return {"blobs": blobs.number_all(values)} if self.is_blob else self.write(values, blobs)

    def read_all(self, written: Json, blobs: Sequence[Content], expansion: Expansion) -> Sequence[Any]:
        """Return the values that `write_all` wrote. Raises an exception of any type if one of them is malformed."""
        if self.is_blob and type(written) is dict:
            ((name, numbers),) = written.items()
            if name != "blobs" or type(numbers) is not list:
                raise ValueError(self.name)
            return _contents(numbers, blobs, self.types, expansion)
        return self.read(_list(written), blobs, expansion)

    def write(self, values: Sequence[Any], blobs: Blobs) -> Sequence[Json]:
        """Return each value as JSON."""
        if self.is_blob:
            return [{"blob": number} for number in blobs.number_all(values)]
        if self.is_mixed and not CONTENTS.isdisjoint(map(type, values)):
            numbers = iter(blobs.number_all([value for value in values if type(value) in CONTENTS]))
            return [{"blob": next(numbers)} if type(value) in CONTENTS else value for value in values]
        return values

    def contents(self, values: Sequence[Any]) -> Iterable[Any]:
        """Return the blobs among the values."""
        if self.is_mixed:
            return [value for value in values if type(value) in CONTENTS]
        return values if self.is_blob else ()

    def check(self, values: Sequence[Any]) -> None:
        """Raise `ValueError` or `TypeError` unless all values match the field's types and rules."""
        self._kinds(values)
        for rule in self.rules:
            if hasattr(rule, "check_all"):
                rule.check_all(values)
            else:
                for value in dict.fromkeys(values):
                    rule(value)

    def check_forms(self, values: Sequence[Any]) -> None:
        """Raise `ValueError` unless all values match the field's types and have a form in JSON."""
        kinds = self._kinds(values)
        if self.is_blob:
            return
        if str in kinds:
            text = "".join(_of_kind(str, values, kinds))
            if not is_text(text):
                raise ValueError(self.name)
        if int in kinds:
            numbers = _of_kind(int, values, kinds)
            if min(numbers) < SMALLEST or max(numbers) > LARGEST:
                raise ValueError(self.name)

    def _kinds(self, values: Sequence[Any]) -> set[type]:
        """Return the types of the values. Raises `ValueError` if one is not a type of the field."""
        kinds = set(map(type, values))
        if not self.types.issuperset(kinds):
            raise ValueError(self.name)
        return kinds

    def read(self, values: Sequence[Any], blobs: Sequence[Content], expansion: Expansion | None) -> Sequence[Any]:
        """Return the values that JSON stands for. Raises an exception of any type if one of them is malformed.

        Without `expansion`, blobs are returned unchanged, including ropes that have not been read yet.
        """
        if self.is_blob:
            return _contents(_numbers(values), blobs, self.types, expansion)
        if self.is_mixed and dict in set(map(type, values)):
            found = [value for value in values if type(value) is dict]
            contents = iter(_contents(_numbers(found), blobs, self.types, expansion))
            values = [next(contents) if type(value) is dict else value for value in values]
            if expansion is None:
                self.check([value for value in values if type(value) is not Rope])
                return values
        self.check(values)
        return values


@frozen(eq=False)
class ListColumn:
    """A field that holds any number of tuples of atoms, such as the pieces of a splice: one column per position."""

    name: str
    default: object
    parts: tuple[Column, ...]

    def write_all(self, values: Sequence[Any], blobs: Blobs) -> Json:
        return self.write(values, blobs)

    def read_all(self, written: Json, blobs: Sequence[Content], expansion: Expansion) -> Sequence[Any]:
        return self.read(_list(written), blobs, expansion)

    def write(self, values: Sequence[Any], blobs: Blobs) -> Sequence[Json]:
        written = [part.write(items, blobs) for part, items in self._places(values)]
        items = zip(*written, strict=True)
        return [list(islice(items, len(value))) for value in values]

    def contents(self, values: Sequence[Any]) -> Iterable[Any]:
        return chain.from_iterable(part.contents(items) for part, items in self._places(values))

    def check_forms(self, values: Sequence[Any]) -> None:
        if not {tuple}.issuperset({*map(type, values), *map(type, chain.from_iterable(values))}):
            raise ValueError(self.name)
        for part, items in self._places(values):
            part.check_forms(items)

    def read(self, values: Sequence[Any], blobs: Sequence[Content], expansion: Expansion | None) -> Sequence[Any]:
        if not {list}.issuperset({*map(type, values), *map(type, chain.from_iterable(values))}):
            raise ValueError(self.name)
        items = zip(*(part.read(items, blobs, expansion) for part, items in self._places(values)), strict=True)
        return [tuple(islice(items, len(value))) for value in values]

    def _places(self, values: Sequence[Any]) -> Iterator[tuple[Column, Sequence[Any]]]:
        """Yield the column of each position in the tuples, with the items of all tuples at that position."""
        items = list(chain.from_iterable(values))
        if any(len(item) != len(self.parts) for item in items):
            raise ValueError(self.name)
        return zip(self.parts, zip(*items, strict=True) if items else repeat(()), strict=bool(items))


@frozen(eq=False)
class Columns:
    """The fields of one event type."""

    columns: tuple[Column | ListColumn, ...]

    @property
    def _blob_fields(self) -> int:
        parts = chain.from_iterable(column.parts for column in self.columns)
        return sum(part.is_blob or part.is_mixed for part in parts)

    @classmethod
    def of(cls, shape: Shape) -> Columns | None:
        """Return the columns of a type, or `None` if it holds anything but atoms."""
        try:
            return _columns(shape.cls)
        except NameError:
            return None

    def write_columns(self, columns: Fields, blobs: Blobs) -> dict[str, Json]:
        """Return the columns of many events as JSON, by name. Columns of `None` that default to `None` are left out.

        Only `None` is left out: if a later program changes another default, old records must not change.
        """
        return {
            column.name: column.write_all(values, blobs)
            for column, values in zip(self.columns, columns, strict=True)
            if column.default is not None or values.count(None) < len(values)
        }

    def write(self, rows: Sequence[tuple[Any, ...]], blobs: Blobs) -> list[dict[str, Json]]:
        """Return the fields of each event as JSON.

        Blobs are numbered in the order of the events, so that the numbers do not depend on how many are written at a
        time.
        """
        if self._blob_fields > 1:
            for content in _contents_in(rows):
                blobs.number(content)
        every = zip(self.columns, zip(*rows, strict=True), strict=True)
        written = [column.write(values, blobs) for column, values in every]
        names = [column.name for column in self.columns]
        return [dict(zip(names, values, strict=True)) for values in zip(*written, strict=True)]

    def largest(self, columns: Fields) -> int:
        """Return the size of the largest blob among many events; 0 if they hold none."""
        every = zip(self.columns, columns, strict=True)
        contents = chain.from_iterable(column.contents(values) for column, values in every)
        return max(map(len, contents), default=0)

    def fit(self, columns: Fields) -> bool:
        """Return whether the values of many events match their field types and have a form in JSON.

        The rules of fields were checked when the events were recorded or read.
        """
        try:
            for column, values in zip(self.columns, columns, strict=True):
                column.check_forms(values)
        except (ValueError, TypeError):
            return False
        return True

    def read_columns(
        self, written: dict[str, Json], count: int, blobs: Sequence[Content], expansion: Expansion
    ) -> list[Sequence[Any]] | None:
        """Return the columns that `write_columns` wrote, or `None` if a value in them is malformed."""
        try:
            read: list[Sequence[Any]] = []
            for column in self.columns:
                if column.name in written:
                    values = column.read_all(written[column.name], blobs, expansion)
                elif column.default is REQUIRED:
                    return None
                else:
                    values = (column.default,) * count
                if len(values) != count:
                    return None
                read.append(values)
            return read if written.keys() <= {column.name for column in self.columns} else None
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            return None

    def read(
        self, rows: Sequence[Json], blobs: Sequence[Content], expansion: Expansion | None
    ) -> list[tuple[Any, ...]] | None:
        """Return the values of many events, or `None` if one of them is malformed; see `Column.read`."""
        try:
            fields = sum(map(len, rows))
            read: list[Sequence[Any]] = []
            for column in self.columns:
                if column.default is REQUIRED:
                    values = [row[column.name] for row in rows]
                    fields -= len(rows)
                else:
                    values = [row.get(column.name, REQUIRED) for row in rows]
                    left_out = values.count(REQUIRED)
                    fields -= len(rows) - left_out
                    if left_out:
                        values = [column.default if value is REQUIRED else value for value in values]
                read.append(column.read(values, blobs, expansion))
            return None if fields else list(zip(*read, strict=True))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError):
            return None


def _contents_in(values: Iterable[Any]) -> Iterator[Content]:
    """Yield the blobs in values, and in the tuples among them."""
    for value in values:
        if type(value) is tuple:
            yield from _contents_in(value)
        elif type(value) in CONTENTS:
            yield value


def _list(written: Json) -> list[Json]:
    if type(written) is not list:
        raise ValueError("a column is a list")
    return written


def _of_kind(kind: type, values: Sequence[Any], kinds: set[type]) -> Sequence[Any]:
    return values if len(kinds) == 1 else [value for value in values if type(value) is kind]


def _numbers(values: Sequence[Any]) -> list[Any]:
    """Return the numbers in references such as `{"blob": 7}`."""
    numbers = [value["blob"] for value in values]
    if sum(map(len, values)) != len(values):
        raise ValueError("blob")
    return numbers


def _contents(
    numbers: Sequence[Any], blobs: Sequence[Content], types: frozenset[type], expansion: Expansion | None
) -> list[Content]:
    if not numbers:
        return []
    if set(map(type, numbers)) - {int} or min(numbers) < 0:
        raise ValueError("blob")
    read: list[Content] = [blobs[number] for number in numbers]
    if expansion is None:
        types |= {Rope}
    if not types.issuperset(map(type, read)):
        if expansion is None:
            raise ValueError("blob")
        read = [whole_content(content, number, expansion) for content, number in zip(read, numbers, strict=True)]
        if not types.issuperset(map(type, read)):
            raise ValueError("blob")
    return read


@lru_cache(maxsize=512)
def _columns(type_: type) -> Columns | None:
    """Return the columns of a type. Raises `NameError` for annotations that cannot be evaluated.

    Evaluating them takes a twentieth of the time that saving or loading a thousand files takes.
    """
    hints = get_type_hints(type_, include_extras=True)
    columns: list[Column | ListColumn] = []
    if not attrs.has(type_):
        return None
    for field in attrs.fields(type_):
        column = _column(field, hints.get(field.name))
        if not field.init or column is None:
            return None
        columns.append(column)
    return Columns(tuple(columns)) if columns else None


def _column(field: attrs.Attribute[Any], hint: Any) -> Column | ListColumn | None:
    default = REQUIRED if field.default is attrs.NOTHING else field.default
    if default is not REQUIRED and default is not None and type(default) not in (str, int, bool):
        return None
    name = stored_name(field)
    item, *more = (get_args(hint) if get_origin(hint) is tuple else ()) or (None,)
    if more == [...] and get_origin(item) is tuple and ... not in get_args(item) and get_args(item):
        parts = [_atoms(name, REQUIRED, part) for part in get_args(item)]
        known = tuple(part for part in parts if part is not None)
        return ListColumn(name, default, known) if len(known) == len(parts) else None
    return _atoms(name, default, hint)


def _atoms(name: str, default: object, hint: Any) -> Column | None:
    """Return the column of a type, or `None` if it holds anything but atoms and blobs."""
    rules: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *more = get_args(hint)
        rules = tuple(rule for rule in more if callable(rule))
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if not CONTENTS.union((str, int, bool, type(None))).issuperset(members):
        return None
    holds_contents = not CONTENTS.isdisjoint(members)
    is_blob = CONTENTS.issuperset(members)
    return Column(name, frozenset(members), default, is_blob, holds_contents and not is_blob, rules)
