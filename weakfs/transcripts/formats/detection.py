"""Format detection: the table of formats, and the format of a line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from weakfs.transcripts.formats.claude_code import is_claude_code, read_claude_code
from weakfs.transcripts.formats.codex import is_codex, read_codex
from weakfs.transcripts.formats.copilot import is_copilot, read_copilot
from weakfs.transcripts.formats.messages import read_anthropic, read_chat, read_plain, read_responses
from weakfs.transcripts.records import LineReader, Message

READERS: Mapping[str, LineReader] = MappingProxyType(
    {
        "weakfs": read_plain,
        "openai-chat": read_chat,
        "openai-responses": read_responses,
        "anthropic": read_anthropic,
        "claude-code": read_claude_code,
        "codex": read_codex,
        "copilot": read_copilot,
    }
)


def sniff(message: Message) -> str | None:
    """Return the name of a line's format; `None` for an unknown type.

    Each line is examined by itself: transcripts get concatenated, and programs switch to another interface mid-session.
    A message without calls is always "anthropic", whoever wrote it; this is harmless, because nothing is found in it.
    """
    if is_codex(message):
        return "codex"
    if is_copilot(message):
        return "copilot"
    if message.get("type") in ("function_call", "function_call_output"):
        return "openai-responses"
    if message.get("tool_calls") is not None or message.get("role") == "tool":
        return "openai-chat"
    if "role" in message:
        return "anthropic"
    if is_claude_code(message):
        return "claude-code"
    if "tool" in message and "type" not in message:
        return "weakfs"
    return None
