"""The JSON of calls: reading the arguments that a model sent, and recording arguments and receipts."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache
from keyword import iskeyword
from os import PathLike, fspath
from typing import Any, cast

import attrs
import orjson

from weakfs.messages import clip, plural
from weakfs.tools.errors import ToolValidationError
from weakfs.tools.schemas.pydantic_models import is_model

# JSON longer than this is recorded as bytes, which a session file stores as a blob.
INLINE = 1024


# How many characters a message shows on each side of an error in JSON text.
AROUND = 20


def read_json(text: str | bytes | bytearray) -> object:
    """Return the value of JSON text; empty text, which some models send, stands for no arguments.

    Raises `ToolValidationError`, with line and column, if the text is not JSON or names an argument twice.
    """
    if not isinstance(text, str):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _not_json(f"byte {error.start} is not UTF-8") from None
    if not text.strip():
        return {}
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        around = text[max(error.pos - AROUND, 0) : error.pos + AROUND]
        where = f"line {error.lineno}, column {error.colno} (around {around!r})"
        raise _not_json(f"{error.msg.removesuffix(' at')} at {where}") from None
    except RecursionError:
        raise _not_json("it is nested too deeply") from None
    except ToolValidationError:
        raise
    except ValueError as error:
        # An integer with more digits than Python accepts.
        raise _not_json(str(error)) from None


def _not_json(reason: str) -> ToolValidationError:
    return ToolValidationError(
        f"arguments: not valid JSON: {reason}; send one JSON object with the arguments by name, "
        'such as {"path": "/a.txt"}'
    )


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _not_json(f"{clip(twice, 60)!r} is given {plural(names.count(twice), 'time')}")
    return made


def _refuse_constant(name: str) -> object:
    raise _not_json(f"{name} is not a JSON number")


def recorded(value: object) -> str | bytes:
    """Return `value` as JSON: text of at most 1 KiB of UTF-8, or bytes. A note replaces what JSON cannot hold."""
    data = _encode(value)
    # A copy, because the object that orjson returns takes up to ten times the memory of its bytes.
    return bytes(memoryview(data)) if len(data) > INLINE else data.decode()


def _encode(value: object) -> bytes:
    # Encoding a custom value may raise any exception; the call is still recorded.
    try:
        read = _reader_of(cast(Any, type(value)))
        # The fields are not left to `plain`: a callback from orjson takes as long as the encoding itself.
        return orjson.dumps(value if read is None else read(value), default=plain)
    except Exception:
        pass
    # The slow path supports integers of any size, keys that are not text, and lone surrogates.
    try:
        return json.dumps(value, default=plain, separators=(",", ":")).encode()
    except Exception as error:
        return orjson.dumps({"unrecorded": f"{type(value).__name__}: {clip(str(error), 200)}"})


@lru_cache(1024)
def _reader_of(kind: Any) -> Callable[[object], dict[str, object]] | None:
    """Return the function that reads the fields of an attrs class or a model, `None` for other classes."""
    if is_model(kind):
        return lambda value: dict(vars(value))
    if not attrs.has(kind):
        return None
    names = [one.name for one in attrs.fields(kind) if one.init]
    if any(map(iskeyword, names)):
        return lambda value: {name: getattr(value, name) for name in names}
    # The names are attribute names. A compiled lambda takes half as long as `attrgetter` with `zip`, and a sixth as
    # long as a comprehension.
    return cast(
        "Callable[[object], dict[str, object]]",
        eval(f"lambda value: {{{', '.join(f'{name!r}: value.{name}' for name in names)}}}"),
    )


def plain(value: object) -> object:
    """Return a JSON value in place of one that JSON cannot hold."""
    kind = cast(Any, type(value))
    read = _reader_of(kind)
    if read is not None:
        return read(value)
    if isinstance(value, bytes | bytearray):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    if isinstance(value, Set):
        return sorted(cast("Set[object]", value), key=repr)
    return fspath(cast("PathLike[str]", value)) if isinstance(value, PathLike) else f"<{type(value).__name__}>"
