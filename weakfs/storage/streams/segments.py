"""Segments: the values that hold the frames of a stream that are no longer in the tail of its head."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from attrs import evolve

from weakfs.class_decorators import frozen
from weakfs.storage.event_store import Frame
from weakfs.storage.storage import AsyncStorage
from weakfs.storage.streams.format import Head, decode_segment, encode_segment

# How many segments are read at once.
READ_SEGMENTS = 8


@frozen
class Segments:
    """The segments of one stream: the keys in `directory`, named by the number of the last frame."""

    storage: AsyncStorage
    directory: str
    tail_bytes: int
    merge_bytes: int

    async def read(self, head: Head, position: int) -> AsyncIterator[Frame]:
        """Yield the frames that follow `position`, up to the first that is missing."""
        directory = self.directory
        last, count = position, 1
        while position + 1 < head.tail_first:
            keys = await self.storage.keys(directory, after=f"{directory}{last:020d}", limit=count)
            values = await self.storage.get_many(keys)
            for key in keys:
                for frame in decode_segment(values[key], key) if key in values else ():
                    # Segments may overlap if a process died while merging them.
                    if frame.number == position + 1:
                        yield frame
                        position = frame.number
            if len(keys) < count:
                break
            last, count = int(keys[-1][len(directory) :]), READ_SEGMENTS
        for number, data in enumerate(head.tail, head.tail_first):
            if number == position + 1:
                yield Frame(number, data)
                position = number

    async def rolled(self, head: Head) -> Head:
        """Return the head with its tail moved into a segment, if the tail has grown beyond its budget.

        A segment contains only appended frames, so it does no harm if the head is not replaced afterwards.
        """
        size = sum(map(len, head.tail))
        if not head.tail or size < self.tail_bytes:
            return head
        directory = self.directory
        frames = [Frame(number, data) for number, data in enumerate(head.tail, head.tail_first)]
        # Not `set`: if another writer was faster, the key may already hold a merged segment.
        await self.storage.create(f"{directory}{head.number:020d}", encode_segment(frames))
        segments = (*(one for one in head.segments if one[0] >= head.first), (head.number, size))
        merged = head.merged
        if sum(size for _, size in segments) >= self.merge_bytes:
            keys = [f"{directory}{last:020d}" for last, _ in segments]
            if await self._merge(keys, range(max(merged + 1, head.first), head.number + 1)):
                segments, merged = (), head.number
        return evolve(head, tail=(), segments=segments, merged=merged)

    async def _merge(self, keys: Sequence[str], numbers: range) -> bool:
        """Merge segments into the last of them. Return false if frames are missing, because others merge or trim."""
        values = await self.storage.get_many(keys)
        frames = {frame.number: frame for key, value in values.items() for frame in decode_segment(value, key)}
        if any(number not in frames for number in numbers):
            return False
        await self.storage.set(keys[-1], encode_segment([frames[number] for number in numbers]))
        for key in keys[:-1]:
            await self.storage.delete(key)
        return True

    async def trim(self, first: int) -> None:
        """Delete the segments that hold only frames before `first`."""
        for key in await self.storage.keys(self.directory):
            if int(key.rpartition("/")[2]) < first:
                await self.storage.delete(key)
