"""The simplest values in JSON: text, numbers, truth values and nothing, and what has one form as text."""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from uuid import UUID

import orjson

from weakfs.session.codec.pools import Json

# orjson turns nothing into text in silence.
AS_IT_IS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS

# What each is called in a message.
ATOMS: dict[type, str] = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    float: "a number",
    type(None): "null",
}

# Types that say nothing of their values.
UNTOLD = (Any, object, tuple, list, dict)

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1


def plain_atom(value: Any) -> Json:
    """Give an atom as JSON: what JSON has no form for is marked, so that it is not changed in silence."""
    if type(value) is float and not math.isfinite(value):
        return {"float": repr(value)}
    if type(value) is int and not SMALLEST <= value <= LARGEST:
        return {"int": hex(value)}
    if type(value) is str and not is_text(value):
        return {"utf-16": b64encode(value.encode("utf-16-le", "surrogatepass")).decode("ascii")}
    if type(value) not in ATOMS:
        if isinstance(value, Enum):
            return enum_row(value)
        raise ValueError(f"text, a number, true, false or null is expected, not {type(value).__name__}")
    return value


def enum_row(member: Enum) -> Json:
    """Give an enum's member as JSON: its value where that is an atom which stands for it, else its name."""
    value = member.value
    if type(value) in ATOMS and (type(value) is not float or math.isfinite(value)):
        try:
            if type(member)(value) is member:
                return plain_atom(value)
        except ValueError:
            pass
    return {"name": member.name}


def read_enum(row: Json, type_: type[Enum]) -> Enum:
    """Give the member of an enum that a piece of JSON stands for; `ValueError` if there is none."""
    if type(row) is dict and row.keys() == {"name"}:
        member = type_.__members__.get(row["name"]) if type(row["name"]) is str else None
        if member is None:
            raise ValueError(f"{type_.__name__} has no member {row['name']!r:.60}")
        return member
    return type_(read_atom(row))


def is_text(text: str) -> bool:
    """Tell whether text has a form in UTF-8: whether it is free of lone surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_atom(row: Json) -> Any:
    """Give the atom that a piece of JSON stands for; `ValueError` if it stands for none."""
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
                return b64decode(text, validate=True).decode("utf-16-le", "surrogatepass")
    raise ValueError("a value that says what it is, is expected")


@cache
def simple_types() -> dict[type, tuple[Callable[[Any], str], Callable[[str], Any]]]:
    """Give the types that have one form as text, with the way there and back."""
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
    days, seconds, microseconds = map(int, text.split(" "))
    return timedelta(days, seconds, microseconds)
