"""Numbered lines of a file that may be huge, cut off or no text at all, and the JSON in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, cast

import orjson

from ._records import Message, Skipped

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DRAIN_BYTES = 1 << 20


class Line(NamedTuple):
    """One line with its line end; `data` is None if it was too long to be held."""

    number: int
    data: bytes | None


def numbered_lines(file: BinaryIO, *, max_line_bytes: int) -> Iterator[Line]:
    """Yield every line without ever holding more than `max_line_bytes` of one."""
    number = 0
    while data := file.readline(max_line_bytes + 1):
        number += 1
        if number == 1:
            data = data.removeprefix(_BYTE_ORDER_MARK)
        if len(data) <= max_line_bytes:
            yield Line(number, data)
            continue
        while data and not data.endswith(b"\n"):
            data = file.readline(_DRAIN_BYTES)
        yield Line(number, None)


def decode(line: Line) -> Message | Skipped | None:
    """Give the object on a line, why there is none, or None for a blank line."""
    number, data = line
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
        return NotJson(f"{error.msg} at column {error.colno}")
    except RecursionError:
        return NotJson("nested too deeply")
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
