"""Copilot CLI's session files: events, each with a `type` such as `tool.execution_start`, and `data`.

The format is defined by the event types of GitHub's Copilot SDK (`session-events.ts`): `id`, `parentId`, `timestamp`,
`type`, `data`. A tool starts in one event and completes in another, joined by `toolCallId`. Information about the same
calls in messages is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from weakfs.transcripts.call_parts import read_answer, read_call
from weakfs.transcripts.json_lines import as_object, fields_of
from weakfs.transcripts.records import Answer, Found, Message, TranscriptCall

_REWIND = "session.snapshot_rewind"
_FAMILIES = ("session.", "user.", "assistant.", "tool.", "subagent.", "skill.", "hook.", "system.")


def is_copilot(message: Message) -> bool:
    """Return whether a line is from Copilot CLI."""
    kind = message.get("type")
    return isinstance(kind, str) and kind.startswith(_FAMILIES) and as_object(message.get("data")) is not None


def read_copilot(message: Message, line: int) -> Iterator[Found]:
    """Yield the call that a line starts, or the answer with which it completes one."""
    data, kind = fields_of(message.get("data")), message.get("type")
    if kind == "tool.execution_start":
        arguments = data.get("arguments")
        if isinstance(arguments, str) and not arguments.lstrip().startswith("{"):
            # Tools that take text instead of fields.
            arguments = {"input": arguments}
        arguments = {} if arguments is None else arguments
        yield from read_call(line, call_id=data.get("toolCallId"), tool=data.get("toolName"), arguments=arguments)
    elif kind == "tool.execution_complete":
        yield from _read_completed(data, line)
    elif kind == _REWIND:
        # The program itself reverts files here: this is another change to them, which cannot be repeated.
        yield TranscriptCall(None, _REWIND, {}, line, recorded="", recorded_error=False)


def _read_completed(data: Message, line: int) -> Iterator[Found]:
    success = data.get("success")
    is_error = not success if isinstance(success, bool) else None
    result, error = as_object(data.get("result")), as_object(data.get("error"))
    content = error.get("message") if is_error and error is not None else (result or {}).get("content")
    for found in read_answer(line, call_id=data.get("toolCallId"), content=content, is_error=is_error):
        yield attrs.evolve(found, result=error or result) if isinstance(found, Answer) else found


def directory_of(message: Message) -> str | None:
    """Return the session's directory according to an event, or `None` if it names none."""
    data, kind = fields_of(message.get("data")), message.get("type")
    if kind in ("session.start", "session.resume"):
        data = fields_of(data.get("context"))
    elif kind != "session.context_changed":
        return None
    cwd = data.get("cwd")
    return cwd if isinstance(cwd, str) and cwd else None
