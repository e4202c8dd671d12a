"""Messages: the chat and responses interfaces of OpenAI, Anthropic's messages, and our own format.

Ours is one call per line, `{"id": "c1", "tool": "ls", "arguments": {}}`, without answers; the id may be missing.
OpenAI's interfaces do not record whether a call failed.
"""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.transcripts.call_parts import read_answer, read_call, read_objects
from weakfs.transcripts.json_lines import as_object, kind_of
from weakfs.transcripts.records import Found, Message, Skipped


def read_chat(message: Message, line: int) -> Iterator[Found]:
    """Yield the calls in an assistant's `tool_calls`, or the answer in a message with the role `tool`."""
    if message.get("role") == "tool":
        yield from read_answer(line, call_id=message.get("tool_call_id"), content=message.get("content"), is_error=None)
        return
    for entry in read_objects(line, "tool_calls", message.get("tool_calls")):
        if isinstance(entry, Skipped):
            yield entry
            continue
        function = as_object(entry.get("function"))
        custom = as_object(entry.get("custom"))
        if function is None and custom is not None:
            # A custom tool takes text instead of arguments; the only one for which we have an equivalent takes a patch.
            name = "patch" if custom.get("name") == "apply_patch" else "input"
            arguments = {name: custom.get("input")}
            yield from read_call(line, call_id=entry.get("id"), tool=custom.get("name"), arguments=arguments)
            continue
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


def read_plain(message: Message, line: int) -> Iterator[Found]:
    """Yield the call on a line of our own format."""
    yield from read_call(
        line,
        call_id=message.get("id"),
        tool=message.get("tool"),
        arguments=message.get("arguments"),
        is_answered=False,
    )


def read_anthropic(message: Message, line: int) -> Iterator[Found]:
    """Yield the calls and answers among the blocks of one message; skip text and other blocks."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return
    for block in read_objects(line, "content", content):
        if isinstance(block, Skipped):
            yield block
        elif block.get("type") == "tool_use":
            yield from read_call(line, call_id=block.get("id"), tool=block.get("name"), arguments=block.get("input"))
        elif block.get("type") == "tool_result":
            is_error = block.get("is_error")
            yield from read_answer(
                line,
                call_id=block.get("tool_use_id"),
                content=block.get("content"),
                # A result without the field is a success.
                is_error=False if is_error is None else is_error,
            )
