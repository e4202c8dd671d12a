"""Codex's rollout files: items and events in envelopes of `type` and `payload`; the oldest files have none."""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.transcripts.call_parts import read_answer, read_call
from weakfs.transcripts.formats.codex_output import read_output
from weakfs.transcripts.json_lines import NotJson, as_list, as_object, parse_json
from weakfs.transcripts.records import Answer, Found, Message

_ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_ANSWERS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_EVENTS = frozenset({"patch_apply_end", "exec_command_end"})
# Codex's own tools in the items of the oldest files, as far as their names are unique to it.
_BARE_TOOLS = frozenset({"shell", "container.exec", "local_shell"})


def is_codex(message: Message) -> bool:
    """Return whether a line is from Codex."""
    kind = message.get("type")
    if isinstance(kind, str) and kind in _ENVELOPES and "payload" in message:
        return True
    if kind is None:
        return "record_type" in message or ("instructions" in message and "timestamp" in message and "id" in message)
    return kind in ("custom_tool_call", "custom_tool_call_output", "local_shell_call") or _is_bare_call(message)


def item_of(message: Message) -> Message:
    """Return the content of a line: its payload, or the line itself if there is no envelope."""
    if message.get("type") in _ENVELOPES:
        return as_object(message.get("payload")) or {}
    return message


def read_codex(message: Message, line: int) -> Iterator[Found]:
    """Yield the call or answer on a line, or what an event adds to one."""
    if message.get("type") == "compacted":
        return
    item = item_of(message)
    kind = item.get("type")
    if not isinstance(kind, str):
        return
    if kind in _CALLS:
        yield from _read_call(item, kind, line)
    elif kind in _ANSWERS:
        text, is_error = read_output(item.get("output"))
        yield from read_answer(line, call_id=item.get("call_id"), content=text, is_error=is_error)
    elif kind in _EVENTS and isinstance(call_id := item.get("call_id"), str):
        yield Answer(call_id, None, None, line, item, is_event=True)


def _read_call(item: Message, kind: str, line: int) -> Iterator[Found]:
    call_id = item.get("call_id")
    if kind == "local_shell_call":
        call_id = item.get("id") if call_id is None else call_id
        yield from read_call(line, call_id=call_id, tool="local_shell", arguments=item.get("action"))
    elif kind == "custom_tool_call":
        arguments = {"input": item.get("input")}
        yield from read_call(line, call_id=call_id, tool=item.get("name"), arguments=arguments)
    else:
        yield from read_call(line, call_id=call_id, tool=item.get("name"), arguments=item.get("arguments"))


def _is_bare_call(message: Message) -> bool:
    """Return whether a call is in the format of the oldest Codex files, not OpenAI's own: its command is a list."""
    name = message.get("name")
    if message.get("type") != "function_call" or not isinstance(name, str) or name not in _BARE_TOOLS:
        return False
    arguments = message.get("arguments")
    value = parse_json(arguments) if isinstance(arguments, str) else arguments
    inner = None if isinstance(value, NotJson) else as_object(value)
    return inner is not None and as_list(inner.get("command")) is not None
