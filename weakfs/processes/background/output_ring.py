"""The output of a background process in bounded memory: the newest bytes, by their position in the whole output."""

from __future__ import annotations

from itertools import takewhile

from weakfs.class_decorators import frozen
from weakfs.processes.output import is_continuation, whole_characters

# The maximum number of bytes in a UTF-8 character.
_CHARACTER = 4


@frozen
class Excerpt:
    """A part of an output: its text, and the positions of its first byte and of the byte after its last.

    `dropped` is the number of bytes before it that are no longer kept; if a position was requested, only those after
    that position.
    """

    text: str
    start: int
    end: int
    dropped: int


class OutputRing:
    """Accepts any number of bytes and keeps the last `limit` of them. Not thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.total = 0

    @property
    def start(self) -> int:
        """The position of the first kept byte."""
        return max(self.total - self._limit, 0)

    def add(self, data: bytes) -> None:
        """Add what was printed next. Amortized O(its length)."""
        self.total += len(data)
        self._kept += data[-self._limit :] if self._limit else b""
        if len(self._kept) > 2 * self._limit:
            del self._kept[: len(self._kept) - self._limit]

    def bytes_from(self, start: int, stop: int) -> bytes:
        """Return the bytes between two positions, both of them kept."""
        first = self.total - len(self._kept)
        return bytes(self._kept[start - first : stop - first])

    def excerpt(self, since: int | None, most: int, *, is_complete: bool) -> Excerpt:
        """Return at most `most` bytes as text: those from position `since` on, or the newest ones.

        An incomplete character is omitted at the start. At the end it is left for the next excerpt, unless the output
        `is_complete` and ends there. Bytes that are not UTF-8 appear as U+FFFD. Raises `ValueError` for a position
        after the end.
        """
        most = max(most, _CHARACTER)
        if since is not None and not 0 <= since <= self.total:
            raise ValueError(
                f"since is {since}, and there are {self.total} bytes of output; use 'next' of the last answer"
            )
        asked = max(self.total - most, 0) if since is None else since
        start = max(asked, self.start)
        stop = min(start + most, self.total)
        data = self.bytes_from(start, stop)
        if start > (since or 0):
            # Cut at an arbitrary byte.
            skipped = len(list(takewhile(is_continuation, data[: _CHARACTER - 1])))
            data, start = data[skipped:], start + skipped
        if stop < self.total or not is_complete:
            data = whole_characters(data)
        dropped = self.start if since is None else start - since
        return Excerpt(data.decode("utf-8", "replace"), start, start + len(data), dropped)
