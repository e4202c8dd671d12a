"""Writing calls down: any arguments and any receipt as JSON, whatever is in them."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence, Set
from os import PathLike, fspath
from typing import cast

import attrs
import orjson

from weakfs.messages import clip

# JSON longer than this is kept as bytes, which a session file holds as a blob.
INLINE = 1024


def recorded(value: object) -> str | bytes:
    """Give `value` as JSON: text up to 1 KiB of UTF-8, else bytes. What JSON cannot hold is told in its place."""
    data = _encode(value)
    return data if len(data) > INLINE else data.decode()


def _encode(value: object) -> bytes:
    # Whatever a value of somebody else's does while it is looked at, the call that it comes from is written down.
    try:
        return orjson.dumps(value, default=plain)
    except Exception:
        pass
    # The slow way knows integers of any size, keys that are not text, and halves of surrogate pairs.
    try:
        return json.dumps(value, default=plain, separators=(",", ":")).encode()
    except Exception as error:
        return orjson.dumps({"unrecorded": f"{type(value).__name__}: {clip(str(error), 200)}"})


def plain(value: object) -> object:
    """Give a value that JSON lacks in one that it has."""
    kind = type(value)
    if attrs.has(kind):
        return {one.name: getattr(value, one.name) for one in attrs.fields(kind) if one.init}
    if isinstance(value, bytes | bytearray):
        return {"base64": b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(cast("Mapping[object, object]", value))
    if isinstance(value, Sequence):
        return list(cast("Sequence[object]", value))
    if isinstance(value, Set):
        return sorted(cast("Set[object]", value), key=repr)
    return fspath(cast("PathLike[str]", value)) if isinstance(value, PathLike) else f"<{type(value).__name__}>"
