"""An awaited event store in memory whose appends wait until they are let through, or fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from attrs import frozen

from weakfs import InMemoryFilesystem, Session, ToolResult, Toolset
from weakfs.storage.engines.memory import AsyncMemoryStorage
from weakfs.storage.streams import AsyncStorageEventStore
from weakfs.tools import ToolCalls


class GatedStreams(AsyncStorageEventStore):
    """`hold` closes the gate at a moment, "before" or "after" an append of that many frames takes effect."""

    def __init__(self) -> None:
        super().__init__(AsyncMemoryStorage())
        self.fault: Callable[[str], None] = lambda moment: None
        # The number of frames of each append that took effect.
        self.groups: list[int] = []
        self._held: str | None = None
        self._least = 1
        self._gate, self._reached = asyncio.Event(), asyncio.Event()

    def hold(self, moment: str, *, frames: int = 1) -> None:
        self._held, self._least = moment, frames
        self._gate, self._reached = asyncio.Event(), asyncio.Event()

    def let_go(self) -> None:
        self._held = None
        self._gate.set()

    async def reached(self) -> None:
        """Wait until an append is at the gate."""
        await self._reached.wait()

    async def _pass(self, moment: str, count: int) -> None:
        self.fault(moment)
        if self._held == moment and count >= self._least:
            self._reached.set()
            await self._gate.wait()

    async def append(self, stream: str, expected: int, frames: Sequence[bytes], **options: Any) -> int:
        await self._pass("before", len(frames))
        number = await super().append(stream, expected, frames, **options)
        self.groups.append(len(frames))
        await self._pass("after", len(frames))
        return number


async def gated_session() -> tuple[GatedStreams, Session, Toolset]:
    """Open a session on new storage whose appends can be held."""
    store = GatedStreams()
    session = await Session.aopen(store, "s")
    return store, session, Toolset(session)


def ids(session: Session) -> list[str]:
    return [call.call_id for call in session[ToolCalls].all()]


def names(session: Session) -> list[str]:
    return sorted(entry.name for entry in InMemoryFilesystem(session).list())


def write(tools: Toolset, path: str, content: str = "1") -> Coroutine[object, None, ToolResult[object]]:
    return tools.acall("write_file", {"path": path, "content": content}, call_id=path[1:])


async def is_as_stored(session: Session, store: GatedStreams) -> None:
    """Check that another session opened on the storage is the same."""
    async with await Session.aopen(store, session.session_id) as other:
        assert other.to_bytes() == session.to_bytes()


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@frozen
class Nothing:
    """No parameters."""
