"""Hooks of the Claude Agent SDK that record its own tools, Bash included, as calls of a session."""

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
    """Return hooks that make each tool that Claude Code runs a call of the toolset, under its `tool_use_id`.

    The toolset's filesystem is a `HostFilesystem` over the agent's working directory. What changes there between
    `PreToolUse` and `PostToolUse` becomes the changes of the call. Tools that run at the same time are one call, under
    the id of the first: nobody can tell which of them changed what. A tool that fails keeps what it did, as Claude
    expects; `undo_failed` undoes it and tells Claude so, unless another tool ran at the same time.

    Tools named in `not_recorded`, and those of `mcp_server` with its default name, are not recorded here. A tool that
    the toolset's policy forbids is denied. Any other failure of a hook is logged, and the tool runs unrecorded. The
    hooks need asyncio, not trio.
    """
    events = ClaudeEvents(ToolRecorder(toolset, caller, undo_failed), frozenset(not_recorded), logger)

    async def answer(payload: HookInput, tool_use_id: str | None, context: HookContext) -> HookJSONOutput:
        return cast("HookJSONOutput", await events.answer(cast("dict[str, Any]", payload)))

    return {cast("HookEvent", event): [HookMatcher(hooks=[answer])] for event in EVENTS}
