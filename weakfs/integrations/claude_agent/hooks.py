"""Hooks of the Claude Agent SDK that record its own tools, Bash included, as calls of a session."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, cast

from claude_agent_sdk import HookContext, HookMatcher
from claude_agent_sdk.types import HookEvent, HookInput, HookJSONOutput

from weakfs.class_decorators import define
from weakfs.integrations.tool_recorder import ToolRecorder
from weakfs.tools import Toolset
from weakfs.tools.calls.external_call import ExternalCallFailed

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
    made = _Hooks(ToolRecorder(toolset, caller, undo_failed), frozenset(not_recorded))
    return {
        "PreToolUse": [HookMatcher(hooks=[made.before])],
        "PostToolUse": [HookMatcher(hooks=[made.after])],
        "PostToolUseFailure": [HookMatcher(hooks=[made.after])],
        # A tool that was denied or interrupted has no end of its own.
        "UserPromptSubmit": [HookMatcher(hooks=[made.finish])],
        "Stop": [HookMatcher(hooks=[made.finish])],
    }


@define(eq=False)
class _Hooks:
    """The hooks of one agent."""

    _recorder: ToolRecorder
    _not_recorded: frozenset[str]

    async def before(self, payload: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        """Begin a call, or join the one that is under way."""
        fields = cast("dict[str, Any]", payload)
        try:
            name = str(fields["tool_name"])
            if name not in self._not_recorded and not name.startswith("mcp__weakfs__"):
                await self._recorder.begin(name, fields.get("tool_input") or {}, str(fields["tool_use_id"]))
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
            failed = fields.get("hook_event_name") == "PostToolUseFailure"
            said = _text(fields.get("error") if failed else fields.get("tool_response"))
            note = await self._recorder.end(str(fields.get("tool_use_id")), said, failed=failed)
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
            await self._recorder.finish()
        except Exception:
            logger.exception("what a tool changed could not be recorded")
        return {}


def _text(answer: object) -> str:
    if isinstance(answer, dict):
        answer = answer.get("stdout", answer.get("content", ""))
    return answer if isinstance(answer, str) else ""


def _denied(reason: str) -> HookJSONOutput:
    decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return cast("HookJSONOutput", {"hookSpecificOutput": decision})
