"""Base classes of engines: `DerivedStorage` and `DerivedEventStore` derive all methods from a handful of operations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from weakfs.storage.checksums import checksum_of
from weakfs.storage.errors import FrameDamaged, StorageDamaged
from weakfs.storage.event_store import Frame
from weakfs.storage.keys import LAST, check_stream
from weakfs.storage.storage import Versioned

# How many keys or values, and how many frames, one request returns.
PAGE, FRAMES = 500, 256


class DerivedStorage(ABC):
    """An `AsyncStorage` that needs `get_versioned`, `set`, `create`, `replace`, `delete`, `keys` and `close`.

    An engine overrides methods that it can perform better, such as bulk operations in one request.
    """

    @property
    @abstractmethod
    def url(self) -> str: ...

    @property
    def atomic_batches(self) -> bool:
        return False

    @abstractmethod
    async def get_versioned(self, key: str) -> Versioned | None: ...

    @abstractmethod
    async def set(self, key: str, value: bytes) -> None: ...

    @abstractmethod
    async def create(self, key: str, value: bytes) -> str | None: ...

    @abstractmethod
    async def replace(self, key: str, value: bytes, *, version: str) -> str | None: ...

    @abstractmethod
    async def delete(self, key: str) -> bool: ...

    @abstractmethod
    async def keys(self, prefix: str = "", *, after: str = "", limit: int | None = None) -> list[str]: ...

    @abstractmethod
    async def close(self) -> None: ...

    async def get(self, key: str) -> bytes | None:
        found = await self.get_versioned(key)
        return None if found is None else found.value

    async def exists(self, key: str) -> bool:
        return await self.get_versioned(key) is not None

    async def children(self, directory: str = "", *, after: str = "", limit: int | None = None) -> list[str]:
        """Return the names below a directory. A subdirectory costs one request, however many keys are in it."""
        above = f"{directory}/" if directory else ""
        names: list[str] = []
        # A directory is returned as `name/`, and its contents are skipped.
        position = above + after + (LAST if after.endswith("/") else "")
        while limit is None or len(names) < limit:
            page = PAGE if limit is None else min(PAGE, limit - len(names))
            found = await self.keys(above, after=position, limit=page)
            for key in found:
                if key <= position:
                    continue
                name, slash, _ = key[len(above) :].partition("/")
                names.append(name + slash)
                position = above + name + (f"/{LAST}" if slash else "")
            if len(found) < page:
                break
        return names

    async def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        found = {key: await self.get(key) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    async def set_many(self, values: Mapping[str, bytes]) -> None:
        for key, value in values.items():
            await self.set(key, value)

    async def items(self, prefix: str = "") -> AsyncIterator[tuple[str, bytes]]:
        after = ""
        while found := await self.keys(prefix, after=after, limit=PAGE):
            values = await self.get_many(found)
            for key in found:
                # Keys that were deleted in the meantime are omitted.
                if key in values:
                    yield key, values[key]
            after = found[-1]

    async def clear(self, prefix: str = "") -> int:
        count = 0
        while found := await self.keys(prefix, limit=PAGE):
            for key in found:
                count += await self.delete(key)
        return count


class BatchedStorage(DerivedStorage):
    """A `DerivedStorage` whose `set_many` and `clear` take effect as a whole or not at all."""

    @property
    def atomic_batches(self) -> bool:
        return True

    async def set(self, key: str, value: bytes) -> None:
        await self.set_many({key: value})

    @abstractmethod
    async def set_many(self, values: Mapping[str, bytes]) -> None: ...


class DerivedEventStore(ABC):
    """The part of an `AsyncEventStore` that needs only `head` and `read`."""

    # The interval, in seconds, at which a stream is checked while waiting for its next frame.
    first_pause, longest_pause = 0.02, 1.0

    @abstractmethod
    async def head(self, stream: str) -> int: ...

    @abstractmethod
    def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> AsyncIterator[Frame]: ...

    async def wait(self, stream: str, after: int, timeout: float) -> int:
        pause = self.first_pause
        while True:
            number = await self.head(stream)
            if number > after or timeout <= 0:
                return number
            await self._sleep(min(pause, timeout))
            timeout -= pause
            pause = min(pause * 1.5, self.longest_pause)

    async def flush(self) -> None:  # noqa: B027 # most engines need nothing else
        """Return immediately: acknowledged changes are as durable as the engine makes them."""

    async def _sleep(self, seconds: float) -> None:
        # Imported only when needed: importing it takes longer than importing this whole package.
        import asyncio

        await asyncio.sleep(seconds)

    async def _has_frames(self, stream: str, expected: int, frames: Sequence[bytes]) -> bool:
        """Return whether the frames were already appended, by an attempt whose outcome was unknown."""
        found = [frame async for frame in self.read(stream, after=expected, limit=len(frames))]
        return found == [Frame(number, data) for number, data in enumerate(frames, expected + 1)]


class Page(NamedTuple):
    """Consecutive frames as they are stored, and the number of the newest frame of the stream at the same moment.

    Each frame is its number, its data, and its checksum if it has one. If the storage is damaged, the types may differ.
    """

    head: int
    frames: Sequence[tuple[Any, ...]]


class PagedEventStore(DerivedEventStore):
    """A `DerivedEventStore` that reads its frames in pages."""

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    async def _page(self, stream: str, after: int, limit: int) -> Page:
        """Return at most `limit` frames that follow frame `after`; fewer only at the end."""

    async def read(self, stream: str, *, after: int = 0, limit: int | None = None) -> AsyncIterator[Frame]:
        """Yield frames that match their checksums. Raises `StorageDamaged` at the first that does not or is missing."""
        name, after = check_stream(stream).encode(), max(after, 0)
        while limit is None or limit > 0:
            size = FRAMES if limit is None else min(FRAMES, limit)
            head, found = await self._page(stream, after, size)
            last = after
            for number, data, checksum in found:
                if number != last + 1 or number > head:
                    await self._check_place(stream, after, last, number, head)
                if not isinstance(data, bytes):
                    raise self._damaged(stream, last + 1, last + 1, "its row is damaged")
                if checksum is not None and checksum != checksum_of(name, number, data):
                    raise self._damaged(stream, number, number, "its checksum does not match")
                yield Frame(number, data)
                last = number
            if len(found) < size:
                if last < head and not await self._is_trimmed(stream, after, last):
                    raise self._damaged(stream, last + 1, head)
                return
            after, limit = last, None if limit is None else limit - size

    async def _check_place(self, stream: str, after: int, last: int, number: object, head: int) -> None:
        """Raise `StorageDamaged` if a frame is not one that may follow frame `last`, given a page after `after`."""
        if type(number) is not int or number <= last:
            raise self._damaged(stream, last + 1, last + 1, "its row is damaged")
        if number > last + 1 and not await self._is_trimmed(stream, after, last):
            raise self._damaged(stream, last + 1, number - 1)
        if number > head:
            raise StorageDamaged(
                f"cannot read stream {str(stream)!r} in {self.url!r}: it has frame {number}, but ends at frame {head}: "
                f"the number of its newest frame was changed; restore the storage from a backup"
            )

    async def _is_trimmed(self, stream: str, after: int, last: int) -> bool:
        """Return whether the frame that follows `last` may have been trimmed, given a page of the frames after `after`.

        Not if frame `last` is there: trimming deletes the oldest frames.
        """
        if last > after:
            return False
        return not last or [number for number, *_ in (await self._page(stream, last - 1, 1)).frames] != [last]

    def _damaged(self, stream: str, first: int, last: int, cause: str = "") -> FrameDamaged:
        return FrameDamaged(
            stream, first, last, cause or ("it is missing" if first == last else "they are missing"), self.url
        )
