"""The keys and formats with which the parts of a thread are stored.

| key, below the prefix and the thread | value |
| --- | --- |
| `checkpoint/NAMESPACE/ID` | a checkpoint (without the values of its channels), its metadata and its parent |
| `channel/NAMESPACE/CHANNEL/VERSION` | the value of a channel |
| `writes/NAMESPACE/ID/TASK/INDEX` | a write of a task that belongs to no checkpoint yet |

`ID` is encoded so that the newest checkpoint of a namespace comes first in the order of keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from langchain_core.runnables import RunnableConfig

from weakfs.class_decorators import frozen
from weakfs.storage import StorageDamaged

# A type of the serializer, and the data.
Typed = tuple[str, bytes]

# The maximum length of a segment of a key, in characters.
MAX_SEGMENT = 160


@frozen
class Place:
    """A namespace of a thread."""

    thread_id: str
    namespace: str
    thread: str

    @property
    def checkpoints(self) -> str:
        return f"{self.thread}checkpoint/{segment(self.namespace)}/"

    @property
    def channels(self) -> str:
        return f"{self.thread}channel/{segment(self.namespace)}/"

    @property
    def all_writes(self) -> str:
        return f"{self.thread}writes/{segment(self.namespace)}/"

    def checkpoint(self, checkpoint_id: str) -> str:
        return self.checkpoints + newest_first(checkpoint_id)

    def channel(self, name: str, version: str | int | float) -> str:
        return f"{self.channels}{segment(name)}/{segment(str(version))}"

    def writes(self, checkpoint_id: str) -> str:
        return f"{self.all_writes}{newest_first(checkpoint_id)}/"

    def config(self, checkpoint_id: str) -> RunnableConfig:
        return {
            "configurable": {
                "thread_id": self.thread_id,
                "checkpoint_ns": self.namespace,
                "checkpoint_id": checkpoint_id,
            }
        }


def segment(text: str) -> str:
    """Return any text as one segment of a key; a long one is cut and ends in its digest, because keys have a limit."""
    escaped = quote(text, safe=":|")
    if len(escaped) > MAX_SEGMENT:
        return f"{escaped[: MAX_SEGMENT - 65]}~{sha256(text.encode()).hexdigest()}"
    # Segments must not be empty or begin with a dot. No other text has these forms.
    return "%" if not escaped else "%2E" + escaped[1:] if escaped.startswith(".") else escaped


def newest_first(checkpoint_id: str) -> str:
    """Return a segment for an id; segments sort in the reverse order of ids, even if one id is a prefix of another."""
    return bytes(255 - byte for byte in checkpoint_id.encode()).hex() + "z"


def packed(header: Mapping[str, object], parts: Mapping[str, Typed]) -> bytes:
    """Return a line of JSON with the header and the sizes of the parts, followed by the parts."""
    sizes = {name: [kind, len(data)] for name, (kind, data) in parts.items()}
    line = json.dumps({**header, "parts": sizes}, separators=(",", ":")).encode()
    return b"\n".join([line, b"".join(data for _, data in parts.values())])


# The header fields and the parts of each kind of value.
Kind = tuple[tuple[str, ...], tuple[str, ...]]
CHECKPOINT: Kind = (("id", "parent", "namespace", "thread"), ("checkpoint", "metadata"))
CHANNEL: Kind = ((), ("value",))
WRITE: Kind = (("task", "index", "channel", "path"), ("value",))


def parts_of(key: str, value: bytes, kind: Kind) -> tuple[dict[str, Any], dict[str, Typed]]:
    """Return the header and the parts of a value; raises `StorageDamaged` if it lacks what its kind must have."""
    line, _, data = value.partition(b"\n")
    try:
        header = json.loads(line)
        found: dict[str, Typed] = {}
        at = 0
        for name, (form, size) in header["parts"].items():
            if type(form) is not str or type(size) is not int or size < 0:
                raise TypeError(f"its part {name!r} has no type or no size")
            found[name] = form, data[at : at + size]
            at += size
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(key, error) from error
    if at != len(data):
        raise damaged(key, "its length does not match its header")
    missing = [*(name for name in kind[0] if name not in header), *(name for name in kind[1] if name not in found)]
    if missing:
        raise damaged(key, f"it has no {missing[0]}")
    return header, found


def damaged(key: str, problem: object) -> StorageDamaged:
    """Return the error for a value that cannot be read."""
    return StorageDamaged(f"cannot read {key!r}: {problem}; delete the thread, or restore the storage")
