"""The tools of a toolset as runnable tools of the SDK, for `client.beta.messages.tool_runner`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from anthropic.lib.tools import (
    BetaAsyncBuiltinFunctionTool,
    BetaBuiltinFunctionTool,
    BetaFunctionToolResultType,
    ToolError,
)
from anthropic.types.beta import BetaToolUnionParam

from weakfs.tools import ToolResult, Toolset


def runnable_tools(toolset: Toolset, *, caller: str | None = None) -> list[BetaBuiltinFunctionTool]:
    """Return the tools of a toolset for the runner of an `Anthropic` client.

    `caller` names who makes the calls. A failed call raises `ToolError`, which the runner sends to the model.
    """
    return [RunnableTool(toolset, definition, caller) for definition in toolset.definitions("anthropic")]


def async_runnable_tools(toolset: Toolset, *, caller: str | None = None) -> list[BetaAsyncBuiltinFunctionTool]:
    """Return the tools of a toolset for the runner of an `AsyncAnthropic` client."""
    return [AsyncRunnableTool(toolset, definition, caller) for definition in toolset.definitions("anthropic")]


class _ToolOfToolset:
    """What the tools for both clients share."""

    def __init__(self, toolset: Toolset, definition: Mapping[str, object], caller: str | None) -> None:
        super().__init__()
        self._toolset, self._definition, self._caller = toolset, definition, caller

    def to_dict(self) -> BetaToolUnionParam:
        """Return the definition for a request."""
        return cast("BetaToolUnionParam", dict(self._definition))


class RunnableTool(_ToolOfToolset, BetaBuiltinFunctionTool):
    """One tool of a toolset for the runner."""

    def call(self, input: object) -> BetaFunctionToolResultType:
        """Make one call."""
        return shown(self._toolset.call(self.name, cast("Any", input), caller=self._caller))


class AsyncRunnableTool(_ToolOfToolset, BetaAsyncBuiltinFunctionTool):
    """One tool of a toolset for the runner of an `AsyncAnthropic` client."""

    async def call(self, input: object) -> BetaFunctionToolResultType:
        """Make one call."""
        return shown(await self._toolset.acall(self.name, cast("Any", input), caller=self._caller))


def shown(result: ToolResult[object]) -> BetaFunctionToolResultType:
    """Return the content of a result for the model; raises `ToolError` for a failed call."""
    if not result.success:
        raise ToolError(result.message)
    if not result.images:
        return result.message
    return cast("Iterable[Any]", result.content("anthropic"))
