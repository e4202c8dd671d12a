"""The memory tool, like the SDK's `BetaLocalFilesystemMemoryTool` but on `/memories` of a session."""

from __future__ import annotations

from typing import Any, cast

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, BetaFunctionToolResultType
from anthropic.types.beta import BetaCacheControlEphemeralParam

from weakfs.filesystem import Filesystem
from weakfs.integrations.anthropic.memory_commands import MEMORY
from weakfs.integrations.anthropic.runner import shown
from weakfs.session import Session
from weakfs.tools import Capability, Policy, Toolset


def _toolset(
    session: Session, filesystem: Filesystem | None, capability: Capability | None, policy: Policy | None
) -> Toolset:
    return Toolset(session, filesystem, tools=[MEMORY], capability=capability, policy=policy, refuse_stale_writes=False)


class MemoryTool(BetaAbstractMemoryTool):
    """Anthropic's memory tool on the directory `/memories` of a session, or of a filesystem with that session.

    Each command is one call of the session, named `memory`: it is recorded, and undone if it fails. The answers are
    those of `BetaLocalFilesystemMemoryTool`. `capability` and `policy` limit what a command may do: `str_replace` and
    `insert` read and write. `caller` is recorded with each call.
    """

    def __init__(
        self,
        session: Session,
        filesystem: Filesystem | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        capability: Capability | None = None,
        policy: Policy | None = None,
        caller: str | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.toolset = _toolset(session, filesystem, capability, policy)
        self._caller = caller

    def call(self, input: object) -> BetaFunctionToolResultType:
        """Run one command, as the model sent it."""
        return shown(self.toolset.call("memory", cast("Any", input), caller=self._caller))

    def execute(self, command: Any) -> BetaFunctionToolResultType:
        """Run one command, given as one of the SDK's models."""
        return self.call(command.to_dict())

    def clear_all_memory(self) -> BetaFunctionToolResultType:
        """Delete everything below `/memories`."""
        return self.call({"command": "clear_all_memory"})

    view = create = str_replace = insert = delete = rename = execute


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """`MemoryTool` for an `AsyncAnthropic` client."""

    def __init__(
        self,
        session: Session,
        filesystem: Filesystem | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
        capability: Capability | None = None,
        policy: Policy | None = None,
        caller: str | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.toolset = _toolset(session, filesystem, capability, policy)
        self._caller = caller

    async def call(self, input: object) -> BetaFunctionToolResultType:
        """Run one command, as the model sent it."""
        return shown(await self.toolset.acall("memory", cast("Any", input), caller=self._caller))

    async def execute(self, command: Any) -> BetaFunctionToolResultType:
        """Run one command, given as one of the SDK's models."""
        return await self.call(command.to_dict())

    async def clear_all_memory(self) -> BetaFunctionToolResultType:
        """Delete everything below `/memories`."""
        return await self.call({"command": "clear_all_memory"})

    view = create = str_replace = insert = delete = rename = execute
