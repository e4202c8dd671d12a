"""Numbered lines of a file that may be huge, truncated or not text at all, and the JSON in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, NoReturn, cast

import orjson

from weakfs.transcripts.records import Message, Skipped

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_DRAIN_BYTES = 1 << 20
# A lone surrogate: programs that count in UTF-16 may cut a pair in two, and write the rest to files as U+FFFD.
_HALF = re.compile("[\ud800-\udfff]")


_SPACE = re.compile(r"[ \t\r\n]*")
# The fields of an object that contain a whole conversation: a request to a model, or its response.
_CONVERSATIONS = ("messages", "choices", "input", "output", "calls")


class Line(NamedTuple):
    """One line with its line ending; `data` is `None` if it was too long to be held. `offset` is where it starts."""

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


def decode(line: Line) -> list[Message | Skipped]:
    """Return the objects on a line, or the reason why a part of it is not one; nothing for a blank line.

    A line normally has one object. It has several if a program was killed before it wrote the line break, or if two
    programs appended to one file.
    """
    number, data = line.number, line.data
    if data is None:
        return [Skipped(number, "the line is too long to be read; raise max_line_bytes if it is intended")]
    if not data.strip():
        return []
    value = parse_json(data)
    values = [value] if not isinstance(value, NotJson) else [*_several(data, value)]
    return [message for value in values for message in _messages(line, value)]


def _messages(line: Line, value: object) -> Iterator[Message | Skipped]:
    number = line.number
    if isinstance(value, NotJson):
        if line.data is not None and _is_cut_off(line.data, value):
            yield Skipped(number, f"the file ends in the middle of this line ({value.reason}): it was cut off")
        else:
            yield Skipped(number, f"not JSON: {value.reason}; a transcript has one JSON object per line")
        return
    message = as_object(value)
    if message is None:
        yield Skipped(number, f"the line is {kind_of(value)}, not an object; write one message or call per line")
    else:
        yield from _entries_of(message)


def _is_cut_off(data: bytes, problem: NotJson) -> bool:
    """Return whether a line that is not JSON is the beginning of an object or a list, and the rest is missing."""
    text = data.strip()
    is_begun = text.startswith((b"{", b"[")) and not text.endswith((b"}", b"]"))
    return not data.endswith(b"\n") and (is_begun or "unexpected end of data" in problem.reason)


def _entries_of(message: Message) -> Iterator[Message]:
    """Yield the messages of an object that contains a conversation, such as a request to a model; else the object."""
    if not _is_envelope(message):
        yield message
        return
    for name in _CONVERSATIONS:
        for entry in items_of(message.get(name)):
            inner = as_object(entry)
            if inner is not None:
                yield as_object(inner.get("message")) or inner if name == "choices" else inner


def _is_envelope(message: Message) -> bool:
    known = any(name in message for name in ("role", "type", "tool", "tool_calls"))
    return not known and any(as_list(message.get(name)) for name in _CONVERSATIONS)


def _several(data: bytes, problem: NotJson) -> Iterator[object]:
    """Yield the values on a line that is not one value, then the error after the last one; or else only `problem`."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        yield problem
        return
    for number, one in enumerate(values_in(text)):
        yield problem if isinstance(one.value, NotJson) and number == 0 else one.value


class Value(NamedTuple):
    """One JSON value in a text, and its position; `value` is `NotJson` if the rest cannot be parsed."""

    start: int
    stop: int
    value: object


def values_in(text: str, start: int = 0) -> Iterator[Value]:
    """Yield consecutive JSON values in `text`, separated only by white space."""
    at = _skip_space(text, start)
    while at < len(text):
        value, stop = parse_at(text, at)
        yield Value(at, stop, value)
        if isinstance(value, NotJson):
            return
        at = _skip_space(text, stop)


def parse_at(text: str, at: int) -> tuple[object, int]:
    """Return the JSON value that begins at `at`, or `NotJson`, and the position of its end."""
    try:
        value, stop = _DECODER.raw_decode(text, at)
    except RecursionError:
        return NotJson("nested too deeply"), len(text)
    except json.JSONDecodeError as error:
        return NotJson(f"{error.msg} at column {error.colno}", error.pos), len(text)
    except ValueError as error:
        return NotJson(str(error)), len(text)
    return _mended(value), stop


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()


class NotJson(NamedTuple):
    """The reason why a text is not JSON, and the index of the offending character, if known."""

    reason: str
    offset: int | None = None


def parse_json(text: bytes | str) -> object:
    """Return the value of the JSON in `text`, or `NotJson`; nesting too deep to represent counts as not JSON."""
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
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _mended(value: object) -> object:
    if isinstance(value, str):
        return _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [_mended(one) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        return {_HALF.sub("\ufffd", key): _mended(one) for key, one in cast(Message, value).items()}
    return value


def as_object(value: object) -> Message | None:
    """Return a value if it is a JSON object; `None` otherwise."""
    return cast(Message, value) if isinstance(value, dict) else None


def as_list(value: object) -> list[object] | None:
    """Return a value if it is a JSON list; `None` otherwise."""
    return cast("list[object]", value) if isinstance(value, list) else None


def fields_of(value: object) -> Message:
    """Return a value if it is a JSON object; an empty one otherwise."""
    return as_object(value) or {}


def items_of(value: object) -> list[object]:
    """Return a value if it is a JSON list; an empty one otherwise."""
    return as_list(value) or []


def text_of_parts(parts: list[object]) -> str:
    """Return the text of a message that is given as a list of parts, some of them text."""
    texts = (fields_of(part).get("text") for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))


_KINDS: dict[type[object], str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    type(None): "null",
}


def kind_of(value: object) -> str:
    """Return the kind of a JSON value, for a message."""
    return _KINDS.get(type(value), "a number")
