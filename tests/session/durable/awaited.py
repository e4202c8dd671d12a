"""An awaited event store in memory whose appends wait until they are let through, or fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from weakfs.storage.engines.memory import AsyncMemoryStorage
from weakfs.storage.streams import AsyncStorageEventStore


class GatedStreams(AsyncStorageEventStore):
    """`hold` closes the gate at a moment, "before" or "after" an append of so many frames takes effect."""

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

    async def append(
        self,
        stream: str,
        expected: int,
        frames: Sequence[bytes],
        *,
        contents: Mapping[str, bytes] | None = None,
        fencing: int | None = None,
    ) -> int:
        await self._pass("before", len(frames))
        number = await super().append(stream, expected, frames, contents=contents, fencing=fencing)
        self.groups.append(len(frames))
        await self._pass("after", len(frames))
        return number
