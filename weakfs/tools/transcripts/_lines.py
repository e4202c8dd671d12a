"""Numbered lines of a file that may be huge, cut off or no text at all, and the JSON in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, NoReturn, cast

import orjson

from ._records import Message, Skipped

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DRAIN_BYTES = 1 << 20
# Half of a character of two: programs that count in UTF-16 cut texts there, and write U+FFFD for it into files.
_HALF = re.compile("[\ud800-\udfff]")


class Line(NamedTuple):
    """One line with its line end; `data` is None if it was too long to be held. `offset` is where it starts."""

    number: int
    data: bytes | None
    offset: int = 0


def numbered_lines(file: BinaryIO, *, max_line_bytes: int) -> Iterator[Line]:
    """Yield every line without ever holding more than `max_line_bytes` of one."""
    number = offset = 0
    while data := file.readline(max_line_bytes + 1):
        number += 1
        start, offset = offset, offset + len(data)
        if number == 1:
            data = data.removeprefix(_BYTE_ORDER_MARK)
            start = offset - len(data)
        if len(data) <= max_line_bytes:
            yield Line(number, data, start)
            continue
        while data and not data.endswith(b"\n"):
            data = file.readline(_DRAIN_BYTES)
            offset += len(data)
        yield Line(number, None, start)


def decode(line: Line) -> Message | Skipped | None:
    """Give the object on a line, why there is none, or None for a blank line."""
    number, data, _ = line
    if data is None:
        return Skipped(number, "the line is too long to be read; raise max_line_bytes if it is a real one")
    if not data.strip():
        return None
    value = parse_json(data)
    if isinstance(value, NotJson):
        if not data.endswith(b"\n"):
            return Skipped(number, f"the file ends in the middle of this line ({value.reason}): it was cut off")
        return Skipped(number, f"not JSON: {value.reason}; a transcript has one JSON object a line")
    message = as_object(value)
    if message is None:
        return Skipped(number, f"the line is {kind_of(value)}, not an object; write one message or call a line")
    return message


class NotJson(NamedTuple):
    """Why some text is not JSON."""

    reason: str


def parse_json(text: bytes | str) -> object:
    """Give the value that `text` stands for, or `NotJson`; nesting too deep to hold counts as not JSON."""
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if "surrogate in string" in error.msg:
            return _parse_with_halves(text)
        return NotJson(f"{error.msg} at column {error.colno}")
    except RecursionError:
        return NotJson("nested too deeply")
    return value


def _parse_with_halves(text: bytes | str) -> object:
    try:
        return _mended(json.loads(text, parse_constant=_refuse))
    except RecursionError:
        return NotJson("nested too deeply")
    except ValueError as error:
        return NotJson(str(error))


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _mended(value: object) -> object:
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [_mended(one) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        return {_HALF.sub("\ufffd", key): _mended(one) for key, one in cast(Message, value).items()}
    return value


def as_object(value: object) -> Message | None:
    """Give a JSON object as what it is, None for anything else."""
    return cast(Message, value) if isinstance(value, dict) else None


def as_list(value: object) -> list[object] | None:
    """Give a JSON list as what it is, None for anything else."""
    return cast("list[object]", value) if isinstance(value, list) else None


_KINDS: dict[type[object], str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    type(None): "null",
}


def kind_of(value: object) -> str:
    """Name the kind of a JSON value for a message."""
    return _KINDS.get(type(value), "a number")
