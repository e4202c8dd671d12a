"""Hooks of the Claude Agent SDK that record its own tools, Bash included, as calls of a session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Any, cast

from attrs import field
from claude_agent_sdk import HookContext, HookMatcher
from claude_agent_sdk.types import HookEvent, HookInput, HookJSONOutput

from weakfs.class_decorators import define
from weakfs.messages import clip
from weakfs.tools import Toolset
from weakfs.tools.calls.external_call import ExternalCall, ExternalCallFailed

logger = logging.getLogger("weakfs.integrations.claude_agent")

# Tools of Claude Code that change no files of their own, and are not recorded. Agents run while their subagents' tools
# do, which are recorded.
READ_ONLY_TOOLS = frozenset(
    {
        "Agent",
        "AskUserQuestion",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "LS",
        "Read",
        "Task",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
    }
)

# Codes of calls that the toolset's own rules refuse. Any other refusal, as of an unreadable file, must not stop a tool.
DENIED = frozenset({"operation_forbidden", "policy_denied", "read_only"})

# The longest answer of a tool that is recorded, in characters.
MAX_MESSAGE = 2000


def hooks(
    toolset: Toolset,
    *,
    caller: str = "claude",
    not_recorded: Collection[str] = READ_ONLY_TOOLS,
    undo_failed: bool = False,
) -> dict[HookEvent, list[HookMatcher]]:
    """Return hooks that make each tool that Claude Code runs a call of the toolset, under its `tool_use_id`.

    The toolset's filesystem is a `HostFilesystem` over the agent's working directory. What changes there between
    `PreToolUse` and `PostToolUse` becomes the changes of the call. Tools that run at the same time are one call, under
    the id of the first: nobody can tell which of them changed what. A tool that fails keeps what it did, as Claude
    expects; `undo_failed` undoes it and tells Claude so, unless another tool ran at the same time.

    Tools named in `not_recorded`, and those of `mcp_server` with its default name, are not recorded here. A tool that
    the toolset's policy forbids is denied. Any other failure of a hook is logged, and the tool runs unrecorded. The
    hooks need asyncio, not trio.
    """
    recorder = _Recorder(toolset, caller, frozenset(not_recorded), undo_failed)
    return {
        "PreToolUse": [HookMatcher(hooks=[recorder.before])],
        "PostToolUse": [HookMatcher(hooks=[recorder.after])],
        "PostToolUseFailure": [HookMatcher(hooks=[recorder.after])],
        # A tool that was denied or interrupted has no end of its own.
        "UserPromptSubmit": [HookMatcher(hooks=[recorder.finish])],
        "Stop": [HookMatcher(hooks=[recorder.finish])],
    }


@define(eq=False)
class _Recorder:
    """The call that is under way, and the tools that are part of it."""

    _toolset: Toolset
    _caller: str
    _not_recorded: frozenset[str]
    _undo_failed: bool
    _lock: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _call: ExternalCall | None = field(default=None, init=False)
    _running: set[str] = field(factory=set, init=False)
    # Tools that ran while the call was under way, apart from the first: name and id.
    _joined: list[str] = field(factory=list, init=False)

    async def before(self, payload: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        """Begin a call, or join the one that is under way."""
        try:
            return await self._begin(cast("dict[str, Any]", payload))
        except ExternalCallFailed as refused:
            if refused.result.error_code in DENIED:
                return _denied(refused.result.message)
            logger.warning("a tool runs unrecorded: %s", refused)
        except Exception:
            logger.exception("a tool runs unrecorded: its call could not begin")
        return {}

    async def after(self, payload: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        """End the call when the last tool that is part of it has ended."""
        fields = cast("dict[str, Any]", payload)
        try:
            note = await self._end(fields)
        except Exception:
            logger.exception("what a tool changed could not be recorded")
            return {}
        if note is None:
            return {}
        event = fields["hook_event_name"]
        return cast("HookJSONOutput", {"hookSpecificOutput": {"hookEventName": event, "additionalContext": note}})

    async def finish(self, payload: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        """End the call although some of its tools have not reported an end."""
        try:
            async with self._lock:
                if self._call is not None:
                    await self._record("the end of a tool was not reported")
        except Exception:
            logger.exception("what a tool changed could not be recorded")
        return {}

    async def _begin(self, payload: dict[str, Any]) -> HookJSONOutput:
        name, call_id = str(payload["tool_name"]), str(payload["tool_use_id"])
        if name in self._not_recorded or name.startswith("mcp__weakfs__"):
            return {}
        async with self._lock:
            if self._call is None:
                arguments = payload.get("tool_input") or {}
                call = self._toolset.external_call(name, arguments, call_id=call_id, caller=self._caller)
                self._call = await call.abegin()
            else:
                self._joined.append(f"{name} {call_id}")
            self._running.add(call_id)
        return {}

    async def _end(self, payload: dict[str, Any]) -> str | None:
        async with self._lock:
            call_id = str(payload.get("tool_use_id"))
            if self._call is None or call_id not in self._running:
                return None
            self._running.discard(call_id)
            if self._running:
                return None
            failed = payload.get("hook_event_name") == "PostToolUseFailure"
            said = payload.get("error") if failed else payload.get("tool_response")
            if failed and self._undo_failed and not self._joined:
                call, self._call = self._call, None
                await call.aabort(clip(_text(said), MAX_MESSAGE), code="tool_failed")
                return "The tool failed, and the changes that it made to files were undone."
            return await self._record(clip(_text(said), MAX_MESSAGE))

    async def _record(self, message: str) -> str | None:
        call, joined = self._call, self._joined
        assert call is not None
        self._call, self._joined = None, []
        self._running.clear()
        if joined:
            message = f"{message}\n(ran at the same time: {', '.join(joined)})"
        result = await call.aend(message)
        return None if result.success else f"The changes that the tool made to files were undone: {result.message}"


def _text(answer: object) -> str:
    if isinstance(answer, dict):
        answer = answer.get("stdout", answer.get("content", ""))
    return answer if isinstance(answer, str) else ""


def _denied(reason: str) -> HookJSONOutput:
    decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return cast("HookJSONOutput", {"hookSpecificOutput": decision})
