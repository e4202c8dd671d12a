"""Atoms in JSON: text, numbers, booleans and null, and types with a canonical text form."""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from weakfs.session.codec.blob_table import Json

if TYPE_CHECKING:
    from datetime import timedelta

# The names of the atoms in messages.
ATOMS: dict[type, str] = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
    type(None): "null",
}

# Types that do not constrain their values.
UNCONSTRAINED = (Any, object, tuple, list, dict)

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1


def plain_atom(value: Any) -> Json:
    """Return an atom as JSON. Values without a JSON form are marked, so that none is changed silently."""
    if type(value) is float and not _is_finite(value):
        return {"float": repr(value)}
    if type(value) is int and not SMALLEST <= value <= LARGEST:
        return {"int": hex(value)}
    if type(value) is str and not is_text(value):
        return {"utf-16": b2a_base64(value.encode("utf-16-le", "surrogatepass"), newline=False).decode("ascii")}
    if type(value) not in ATOMS:
        if isinstance(value, Enum):
            return enum_row(value)
        raise ValueError(f"expected text, a number, true, false or null, not {type(value).__name__}")
    return value


def _is_finite(value: float) -> bool:
    return value - value == 0


def enum_row(member: Enum) -> Json:
    """Return an enum member as JSON: its value where that is an atom that identifies it, else its name."""
    value = member.value
    if type(value) in ATOMS and (type(value) is not float or _is_finite(value)):
        try:
            if type(member)(value) is member:
                return plain_atom(value)
        except ValueError:
            pass
    return {"name": member.name}


def read_enum(row: Json, type_: type[Enum]) -> Enum:
    """Return the enum member that a JSON value represents. Raises `ValueError` if there is none."""
    if type(row) is dict and row.keys() == {"name"}:
        member = type_.__members__.get(row["name"]) if type(row["name"]) is str else None
        if member is None:
            raise ValueError(f"{type_.__name__} has no member {row['name']!r:.60}")
        return member
    return type_(read_atom(row))


def is_text(text: str) -> bool:
    """Return whether text can be encoded as UTF-8, that is, has no lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_atom(row: Json) -> Any:
    """Return the atom that a JSON value represents. Raises `ValueError` if it represents none."""
    if type(row) in ATOMS:
        return row
    if type(row) is dict and len(row) == 1:
        (mark, text), *_ = row.items()
        if type(text) is str:
            if mark == "float" and text in ("nan", "inf", "-inf"):
                return float(text)
            if mark == "int":
                return int(text, 16)
            if mark == "utf-16":
                return a2b_base64(text, strict_mode=True).decode("utf-16-le", "surrogatepass")
    raise ValueError("expected a value tagged with its type")


@cache
def simple_types() -> dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]]:
    """Return the types that have a canonical text form, with the functions that convert to and from it."""
    # Importing these modules takes 5 % of the time of a new process that writes and reads a file, and needs none.
    from datetime import date, datetime, time, timedelta
    from decimal import Decimal
    from pathlib import Path, PurePath, PurePosixPath
    from uuid import UUID

    return {
        datetime: (datetime.isoformat, datetime.fromisoformat),
        date: (date.isoformat, date.fromisoformat),
        time: (time.isoformat, time.fromisoformat),
        timedelta: (_timedelta_text, _timedelta),
        UUID: (str, UUID),
        Decimal: (str, Decimal),
        Path: (str, Path),
        PurePath: (str, PurePath),
        PurePosixPath: (str, PurePosixPath),
    }


def _timedelta_text(value: timedelta) -> str:
    return f"{value.days} {value.seconds} {value.microseconds}"


def _timedelta(text: str) -> timedelta:
    from datetime import timedelta

    days, seconds, microseconds = map(int, text.split(" "))
    return timedelta(days, seconds, microseconds)
