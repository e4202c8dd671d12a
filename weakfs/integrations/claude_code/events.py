"""Handling of the events of Claude Code's hooks: they begin and end calls of a session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from weakfs.class_decorators import define, frozen
from weakfs.integrations.claude_code.hook_process import Owner
from weakfs.integrations.claude_code.reading_tools import check_reading_tool
from weakfs.integrations.tool_recorder import ToolRecorder
from weakfs.tools.calls.external_call import ExternalCallFailed

# Tools of Claude Code that change no files themselves, and so are not recorded. The tools of subagents are recorded.
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

# The events that need hooks: the beginning and the ends of a tool, and those of a turn, because a tool that was denied
# or interrupted reports no end.
EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "SubagentStop", "Stop")

# Error codes of calls that the toolset's rules refuse. Any other failure, such as an unreadable file, must not stop a
# tool.
DENIED = frozenset({"operation_forbidden", "policy_denied", "read_only"})

Answer = dict[str, Any]


@frozen
class Agent:
    """A session's main agent or one of its subagents, and the process in which it runs, if that is known."""

    name: str
    owner: Owner | None


@define(eq=False)
class ClaudeEvents:
    """Answers the events of an agent, and records its tools with `recorder`, except those in `not_recorded`."""

    recorder: ToolRecorder
    not_recorded: frozenset[str]
    logger: logging.Logger

    async def answer(self, event: Mapping[str, Any], owner: Owner | None = None) -> Answer:
        """Return the answer to one event, empty if there is nothing to report. Never raises.

        `owner` is the process that the event is from; see `finish_ended`.
        """
        name = event.get("hook_event_name")
        try:
            if name == "PreToolUse":
                if (refused := await self._refusal(event)) is not None:
                    return _denied(refused)
                return await self._begin(event, owner)
            if name in ("PostToolUse", "PostToolUseFailure"):
                return await self._end(event)
            if name in EVENTS:
                await self.recorder.finish(_ended(event))
        except ExternalCallFailed as refused:
            if refused.result.error_code in DENIED or self._hides_a_path(refused.result.error_code):
                return _denied(refused.result.message)
            self.logger.warning("a tool is not recorded: %s", refused)
            return {"systemMessage": f"weakfs did not record this tool: {refused}"}
        except Exception:
            self.logger.exception("a tool or its changes were not recorded: %s failed", name)
        return {}

    async def finish_ended(self) -> None:
        """End the tools of processes that have ended, for example because they were killed. Never raises."""
        try:
            await self.recorder.finish(
                lambda agent: agent.owner is not None and agent.owner.has_ended,
                reason="the process that ran the tool ended before the tool did",
            )
        except Exception:
            self.logger.exception("the changes of a tool were not recorded")

    def _hides_a_path(self, error_code: str | None) -> bool:
        """Return whether rules may forbid some files; a tool of Claude could use any of them, so it must be denied."""
        toolset = self.recorder.toolset
        return error_code == "path_forbidden" and (toolset.capability is not None or toolset.policy is not None)

    async def _refusal(self, event: Mapping[str, Any]) -> str | None:
        """Return why rules of the toolset forbid a tool that reads files and is not recorded."""
        tool, toolset = str(event["tool_name"]), self.recorder.toolset
        if tool not in self.not_recorded or (toolset.capability is None and toolset.policy is None):
            return None
        arguments, directory = event.get("tool_input"), event.get("cwd")
        try:
            await asyncio.to_thread(
                check_reading_tool,
                tool,
                arguments if isinstance(arguments, dict) else {},
                directory if isinstance(directory, str) else toolset.filesystem.root,
                toolset,
                self.recorder.caller,
            )
        except Exception as error:
            # What cannot be checked is denied.
            return str(error)
        return None

    async def _begin(self, event: Mapping[str, Any], owner: Owner | None) -> Answer:
        tool = str(event["tool_name"])
        if tool not in self.not_recorded and not tool.startswith("mcp__weakfs__"):
            arguments = event.get("tool_input") or {}
            agent = Agent(_agent(event), owner)
            await self.recorder.begin(tool, arguments, str(event["tool_use_id"]), agent=agent)
        return {}

    async def _end(self, event: Mapping[str, Any]) -> Answer:
        failed = event["hook_event_name"] == "PostToolUseFailure"
        said = _text(event.get("error") if failed else event.get("tool_response"))
        note = await self.recorder.end(str(event.get("tool_use_id")), said, failed=failed)
        if note is None:
            return {}
        return {"hookSpecificOutput": {"hookEventName": event["hook_event_name"], "additionalContext": note}}


def _agent(event: Mapping[str, Any]) -> str:
    """Return the name of the agent that an event belongs to: a session's main agent or one of its subagents."""
    return f"{event.get('session_id', '')}/{event.get('agent_id', '')}"


def _ended(event: Mapping[str, Any]) -> Callable[[Agent], bool]:
    """Return a function that tells which agents have ended with a turn.

    Subagents in the background continue when the main agent stops, and it may get a message while they work. Only the
    event `Stop` says which of them continue.
    """
    main = f"{event.get('session_id', '')}/"
    if event["hook_event_name"] != "Stop":
        return lambda agent: agent.name == _agent(event)
    tasks = event.get("background_tasks")
    working = {main + str(task.get("id")) for task in tasks or () if isinstance(task, dict)}
    return lambda agent: agent.name.startswith(main) and agent.name not in working


def _text(answer: object) -> str:
    if isinstance(answer, dict):
        answer = answer.get("stdout", answer.get("content", ""))
    return answer if isinstance(answer, str) else ""


def _denied(reason: str) -> Answer:
    decision = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": decision}
