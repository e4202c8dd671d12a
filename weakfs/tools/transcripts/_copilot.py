"""Copilot CLI's session files: events, each with a `type` such as `tool.execution_start`, and `data`.

Their form is that of the event types which GitHub's Copilot SDK publishes (`session-events.ts`): `id`, `parentId`,
`timestamp`, `type`, `data`. A tool starts in one event and completes in another, joined by `toolCallId`. What the
messages say of the same calls is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ._lines import as_object
from ._parts import read_answer, read_call
from ._records import Answer, Found, Message

_FAMILIES = ("session.", "user.", "assistant.", "tool.", "subagent.", "skill.", "hook.", "system.")


def is_copilot(message: Message) -> bool:
    """Tell whether a line is one of Copilot CLI's."""
    kind = message.get("type")
    return isinstance(kind, str) and kind.startswith(_FAMILIES) and as_object(message.get("data")) is not None


def read_copilot(message: Message, line: int) -> Iterator[Found]:
    """Yield the call that a line starts, or the answer that it completes one with."""
    data = as_object(message.get("data")) or {}
    if message.get("type") == "tool.execution_start":
        arguments = data.get("arguments")
        if arguments is None:
            arguments = {}
        elif isinstance(arguments, str) and not arguments.lstrip().startswith("{"):
            # Tools that take text instead of fields.
            arguments = {"input": arguments}
        yield from read_call(line, call_id=data.get("toolCallId"), tool=data.get("toolName"), arguments=arguments)
    elif message.get("type") == "tool.execution_complete":
        success = data.get("success")
        result, error = as_object(data.get("result")), as_object(data.get("error"))
        content = (
            (error or {}).get("message") if success is False and error is not None else (result or {}).get("content")
        )
        is_error = not success if isinstance(success, bool) else None
        for found in read_answer(line, call_id=data.get("toolCallId"), content=content, is_error=is_error):
            yield attrs.evolve(found, result=error or result) if isinstance(found, Answer) else found


def directory_of(message: Message) -> str | None:
    """Return the directory that an event says the session is in, if it says so."""
    data = as_object(message.get("data")) or {}
    kind = message.get("type")
    if kind in ("session.start", "session.resume"):
        data = as_object(data.get("context")) or {}
    elif kind != "session.context_changed":
        return None
    cwd = data.get("cwd")
    return cwd if isinstance(cwd, str) and cwd else None
