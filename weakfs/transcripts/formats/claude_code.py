"""Claude Code's session files: Anthropic messages in an envelope, with the outcome next to the answer.

Its streamed output (`--output-format stream-json`) is the same with other field names.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from weakfs.transcripts.formats.messages import read_anthropic
from weakfs.transcripts.json_lines import as_object
from weakfs.transcripts.records import Answer, Found, Message

# Claude Code's own line types that contain no calls.
_OTHER_TYPES = frozenset({"summary", "system", "progress", "attachment", "file-history-snapshot", "queue-operation"})
_OWN_FIELDS = ("sessionId", "session_id", "leafUuid", "uuid", "messageId")


def is_claude_code(message: Message) -> bool:
    """Return whether a line is from Claude Code."""
    kind = message.get("type")
    if kind in ("assistant", "user"):
        return as_object(message.get("message")) is not None
    if isinstance(kind, str) and kind in _OTHER_TYPES:
        return any(name in message for name in _OWN_FIELDS)
    return isinstance(kind, str) and "sessionId" in message


def read_claude_code(message: Message, line: int) -> Iterator[Found]:
    """Yield the calls and answers of one line; lines of other types have none."""
    inner = as_object(message.get("message"))
    if inner is None or message.get("type") not in ("assistant", "user"):
        return
    found = list(read_anthropic(inner, line))
    # The outcome is recorded once per message: with several answers, it is unknown to which one it belongs.
    is_single = sum(isinstance(one, Answer) for one in found) == 1
    for one in found:
        if isinstance(one, Answer) and is_single:
            yield attrs.evolve(one, result=message.get("toolUseResult", message.get("tool_use_result")))
        else:
            yield one
