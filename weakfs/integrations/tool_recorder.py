"""Recording the tools of another program as calls of a session; tools that run at the same time share a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attrs import field

from weakfs.class_decorators import define
from weakfs.messages import clip
from weakfs.tools import Toolset
from weakfs.tools.calls.external_call import ExternalCall

T = TypeVar("T")

# The maximum length of a recorded answer, in characters.
MAX_MESSAGE = 2000
# The answer that is recorded for a tool without one.
UNREPORTED = "the end of a tool was not reported"


@define(eq=False)
class ToolRecorder:
    """The current call, and the tools that are part of it.

    Whatever changes in the files between the beginning and the end of a tool is recorded as the changes of its call.
    Tools that run at the same time share one call with the id of the first, because their changes cannot be told apart.
    A failed tool keeps its changes, unless `undo_failed` is set and no other tool ran at the same time.
    """

    toolset: Toolset
    caller: str
    undo_failed: bool = False
    _lock: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _call: ExternalCall | None = field(default=None, init=False)
    # The tools of the current call that have not ended, each with its agent.
    _running: dict[str, object] = field(factory=dict, init=False)
    # The name and id of each tool that joined the current call after the first.
    _joined: list[str] = field(factory=list, init=False)

    @property
    def is_under_way(self) -> bool:
        """Whether any tool is running."""
        return self._call is not None

    async def begin(self, name: str, arguments: Mapping[str, Any], tool_id: str, *, agent: object = None) -> None:
        """Begin a call, or join the current one. Raises `ExternalCallFailed` if the call is refused.

        `agent` is what runs the tool, of any type; `finish` passes it to its function.
        """
        async with self._lock:
            if tool_id in self._running:
                return
            if self._call is None:
                # Another process may have undone something in the session.
                await asyncio.to_thread(self.toolset.session.refresh)
                call = self.toolset.external_call(name, arguments, call_id=tool_id, caller=self.caller)
                self._call = await call.abegin()
            else:
                self._joined.append(f"{name} {tool_id}")
            self._running[tool_id] = agent

    async def end(self, tool_id: str, answer: str, *, failed: bool = False) -> str | None:
        """End a tool, and the call with its last tool; return a message if changes were undone."""
        async with self._lock:
            if self._call is None or tool_id not in self._running:
                return None
            del self._running[tool_id]
            if self._running:
                return None
            if failed and self.undo_failed and not self._joined:
                call, self._call = self._call, None
                await call.aabort(clip(answer, MAX_MESSAGE), code="tool_failed")
                return "The tool failed, and the changes that it made to files were undone."
            return await self._record(clip(answer, MAX_MESSAGE))

    async def run(self, work: Callable[[], T]) -> T:
        """Call a function that uses the filesystem, in a thread, as part of the current call."""
        async with self._lock:
            return await (asyncio.to_thread(work) if self._call is None else self._call.arun(work))

    async def finish(self, has_ended: Callable[[Any], bool] = lambda agent: True, *, reason: str = UNREPORTED) -> None:
        """End tools that reported no end because their agents have ended, and the call if no other tool is running."""
        async with self._lock:
            running = {tool: agent for tool, agent in self._running.items() if not has_ended(agent)}
            if self._call is not None and len(running) < len(self._running):
                self._running = running
                if not running:
                    await self._record(reason)

    async def _record(self, message: str) -> str | None:
        call, joined = self._call, self._joined
        assert call is not None
        self._call, self._joined = None, []
        self._running.clear()
        if joined:
            message = f"{message}\n(ran at the same time: {', '.join(joined)})"
        result = await call.aend(message)
        return None if result.success else f"The changes that the tool made to files were undone: {result.message}"
