"""Anthropic messages: calls and answers are blocks in a message's content."""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.transcripts.call_parts import read_answer, read_call, read_objects
from weakfs.transcripts.records import Found, Message, Skipped


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
