"""The output of a command in bounded memory: its beginning, its end, and how much is omitted between them."""

from __future__ import annotations

from typing import TypeVar

D = TypeVar("D", bytes, bytearray)

# A UTF-8 character has at most four bytes, up to three of which are continuation bytes.
_CONTINUATIONS = range(0x80, 0xC0)


class HeadAndTail:
    """Accepts any number of bytes and keeps the first and the last of them, `limit` in all."""

    def __init__(self, limit: int) -> None:
        self._head_room = limit // 2
        self._tail_room = limit - self._head_room
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Add what was printed next. Amortized O(its length)."""
        self.total += len(data)
        room = self._head_room - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_room:
            del self._tail[: len(self._tail) - self._tail_room]

    @property
    def left_out(self) -> int:
        """The number of bytes that are not kept."""
        return max(self.total - self._head_room - self._tail_room, 0)

    def text(self) -> str:
        """Return the kept bytes as text, with a line in brackets where something is omitted.

        Bytes that are not UTF-8 appear as U+FFFD; a character that was cut in two is omitted entirely.
        """
        if not self.left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        end = len(self._tail)
        start = end - self._tail_room
        while start < min(end, len(self._tail) - self._tail_room + 3) and self._tail[start] in _CONTINUATIONS:
            start += 1
        head = whole_characters(self._head)
        tail = self._tail[start:]
        count = self.total - len(head) - len(tail)
        before = head.decode("utf-8", "replace")
        gap = "" if not before or before.endswith("\n") else "\n"
        return f"{before}{gap}[{count} bytes are left out here]\n{tail.decode('utf-8', 'replace')}"


def is_continuation(byte: int) -> bool:
    """Return whether a byte is a UTF-8 continuation byte."""
    return byte in _CONTINUATIONS


def whole_characters(data: D) -> D:
    """Return `data` without an incomplete character at its end."""
    for back in range(1, min(len(data), 4) + 1):
        byte = data[-back]
        if not is_continuation(byte):
            needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return data[:-back] if needed > back else data
    return data
