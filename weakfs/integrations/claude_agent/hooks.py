"""Hooks for the Claude Agent SDK that record its own tools, including Bash, as calls of a session."""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, cast

from claude_agent_sdk import HookContext, HookMatcher
from claude_agent_sdk.types import HookEvent, HookInput, HookJSONOutput

from weakfs.integrations.claude_code.events import EVENTS, READ_ONLY_TOOLS, ClaudeEvents
from weakfs.integrations.tool_recorder import ToolRecorder
from weakfs.tools import Toolset

logger = logging.getLogger("weakfs.integrations.claude_agent")


def hooks(
    toolset: Toolset,
    *,
    caller: str = "claude",
    not_recorded: Collection[str] = READ_ONLY_TOOLS,
    undo_failed: bool = False,
) -> dict[HookEvent, list[HookMatcher]]:
    """Return hooks that record each tool that Claude Code runs as a call of the toolset, with its `tool_use_id` as id.

    The toolset must use a `HostFilesystem` on the agent's working directory. Whatever changes there between
    `PreToolUse` and `PostToolUse` is recorded as the changes of the call. Tools that run at the same time share one
    call with the id of the first, because their changes cannot be told apart. A failed tool keeps its changes, as
    Claude expects; with `undo_failed` they are undone and Claude is informed, unless another tool ran at the same time.

    Tools named in `not_recorded`, and those of `mcp_server` with its default name, are not recorded. A tool that the
    toolset's capability or policy forbids is denied; tools of Claude that read files are checked even if they are not
    recorded. If a hook fails for any other reason, the failure is logged and the tool runs without being recorded. The
    hooks require asyncio, not trio.
    """
    events = ClaudeEvents(ToolRecorder(toolset, caller, undo_failed), frozenset(not_recorded), logger)

    async def answer(payload: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        return cast("HookJSONOutput", await events.answer(cast("dict[str, Any]", payload)))

    return {cast("HookEvent", event): [HookMatcher(hooks=[answer])] for event in EVENTS}
