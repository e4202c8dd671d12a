"""OpenAI messages of the chat and responses interfaces. Neither records whether a call failed."""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.transcripts.call_parts import read_answer, read_call, read_objects
from weakfs.transcripts.json_lines import as_object, kind_of
from weakfs.transcripts.records import Found, Message, Skipped


def read_chat(message: Message, line: int) -> Iterator[Found]:
    """Yield the calls in an assistant's `tool_calls`, or the answer in a message of role `tool`."""
    if message.get("role") == "tool":
        yield from read_answer(line, call_id=message.get("tool_call_id"), content=message.get("content"), is_error=None)
        return
    for entry in read_objects(line, "tool_calls", message.get("tool_calls")):
        if isinstance(entry, Skipped):
            yield entry
            continue
        function = as_object(entry.get("function"))
        if function is None:
            found = kind_of(entry.get("function"))
            yield Skipped(line, f"function of a tool call is {found}, not an object; the call is skipped")
            continue
        yield from read_call(
            line,
            call_id=entry.get("id"),
            tool=function.get("name"),
            arguments=function.get("arguments"),
        )


def read_responses(item: Message, line: int) -> Iterator[Found]:
    """Yield the call or the answer of an item of type `function_call` or `function_call_output`."""
    call_id = item.get("call_id")
    if item.get("type") == "function_call":
        yield from read_call(line, call_id=call_id, tool=item.get("name"), arguments=item.get("arguments"))
    else:
        yield from read_answer(line, call_id=call_id, content=item.get("output"), is_error=None)
