"""The fields of one JSON object in a session file, each checked for its type as it is taken."""

from __future__ import annotations

from typing import Any

from weakfs.session.codec.blob_table import Json
from weakfs.session.errors import SessionFileError, UnknownTag, UnknownType
from weakfs.session.slices.type_registry import Registry, Shape

_MISSING = object()


HEADER: dict[str, type] = {"session_id": str, "origin_id": str, "counter": int}


class Fields:
    """The fields of one JSON object: each must be taken, with one of the types allowed for it."""

    def __init__(self, row: Json, where: str) -> None:
        if type(row) is not dict:
            raise SessionFileError(f"expected an object, not {type(row).__name__}", where=where)
        self._row: dict[str, Json] = dict(row)
        self._where = where

    def take(self, name: str, *types: type, default: Any = _MISSING) -> Any:
        """Return a field and count it as read."""
        value = self._row.pop(name, default)
        if value is _MISSING:
            raise SessionFileError(f"the field {name!r} is missing", where=self._where)
        if value is not default and type(value) not in types:
            names = " or ".join("null" if type_ is type(None) else type_.__name__ for type_ in types)
            raise SessionFileError(f"expected {names}, not {value!r:.60}", where=f"{self._where}.{name}")
        return value

    def header(self) -> dict[str, Any]:
        """Return the fields that a session has apart from its history."""
        return {name: self.take(name, type_) for name, type_ in HEADER.items()}

    def done(self) -> None:
        """Raise `SessionFileError` if a field was not taken."""
        for name in self._row:
            raise SessionFileError(
                f"unknown field {name!r}; pass the registry of the session that was saved", where=self._where
            )


def shape_of(registry: Registry, tag: Json, where: str) -> Shape:
    """Return the shape of the type with a tag. Raises `UnknownTag` if it is not registered."""
    if type(tag) is not str:
        raise SessionFileError(f"expected a tag as text, not {tag!r:.60}", where=where)
    try:
        return registry.shape(tag)
    except UnknownType as error:
        raise UnknownTag(str(error), where=where) from None
