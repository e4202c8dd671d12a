"""Our own format: one call per line, `{"id": "c1", "tool": "ls", "arguments": {}}`, and no answers."""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.transcripts.call_parts import read_call
from weakfs.transcripts.records import Found, Message


def read_plain(message: Message, line: int) -> Iterator[Found]:
    """Yield the call on a line of our own format."""
    yield from read_call(line, call_id=message.get("id"), tool=message.get("tool"), arguments=message.get("arguments"))
