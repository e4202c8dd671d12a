"""Codex's rollout files: items and events in envelopes of `type` and `payload`; the oldest files have no envelopes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from weakfs.transcripts.call_parts import read_answer, read_call
from weakfs.transcripts.json_lines import NotJson, as_list, as_object, fields_of, parse_json, text_of_parts
from weakfs.transcripts.records import Answer, Found, Message

_ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_ANSWERS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_EVENTS = frozenset({"patch_apply_end", "exec_command_end"})
# Codex's own tools in the items of the oldest files, as far as their names are unique to it.
_BARE_TOOLS = frozenset({"shell", "container.exec", "local_shell"})
# `Exit code: 0`, or `Process exited with code 0`, in the lines before `Output:`.
_EXIT = re.compile(r"^(?:Exit code:|Process exited with code) *(-?\d+)", re.MULTILINE)
_HEAD = 500
_FAILURES = (
    "apply_patch verification failed",
    "failed to parse",
    "execution error",
    "exec_command failed",
    "failed in sandbox",
    "aborted by user",
    "aborted",
    "patch rejected",
    "unsupported call",
    "exec rejected",
    "rejected by user",
    "command timed out",
    "failed for `",
)
_SUCCESS = ("success. updated the following files", "done!")


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
        return fields_of(message.get("payload"))
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


def read_output(value: object) -> tuple[str, bool | None]:
    """Return the text of an output, and whether it reports a failure; `None` if it does not say."""
    if isinstance(value, str):
        return _read_text(value)
    parts = as_list(value)
    if parts is not None:
        return _read_text(text_of_parts(parts))
    fields = as_object(value)
    if fields is None:
        return "", None
    text, is_error = read_output(_first(fields.get("output"), fields.get("content"), fields.get("body")))
    code, success = fields_of(fields.get("metadata")).get("exit_code"), fields.get("success")
    if isinstance(code, int):
        return text, code != 0
    return text, not success if isinstance(success, bool) else is_error


def _read_text(text: str) -> tuple[str, bool | None]:
    if text.startswith("{"):
        value = parse_json(text)
        fields = None if isinstance(value, NotJson) else as_object(value)
        if fields is not None and isinstance(fields.get("output"), str):
            output = str(fields["output"])
            code = fields_of(fields.get("metadata")).get("exit_code")
            return output, code != 0 if isinstance(code, int) else _failure_in(output)
    head, mark, rest = text.partition("Output:\n")
    if mark and len(head) <= _HEAD and (found := _EXIT.search(head)):
        return rest, int(found[1]) != 0
    if found := _EXIT.search(text[:_HEAD]):
        return text, int(found[1]) != 0
    return text, _failure_in(text)


def _failure_in(text: str) -> bool | None:
    start = text[:_HEAD].lstrip().lower()
    if start.startswith(_SUCCESS):
        return False
    return True if start.startswith(_FAILURES) else None


def _first(*values: object) -> object:
    return next((value for value in values if value is not None), None)
