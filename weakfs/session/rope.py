"""Bytes that grow at their end: pieces, joined when somebody reads."""

from __future__ import annotations


class Rope:
    """A content and its tail. 5,000 appends of 1 kB cost what they add, not 12.5 GB of copies."""

    __slots__ = ("_length", "_parts")

    # One field, so that a thread that reads while another joins sees the pieces or the whole.
    _parts: bytes | tuple[bytes | Rope, bytes]

    def __init__(self, base: bytes | Rope, tail: bytes) -> None:
        self._parts = (base, tail)
        self._length = len(base) + len(tail)

    def __len__(self) -> int:
        return self._length

    def join(self) -> bytes:
        """Give the whole content. O(length) the first time; the pieces are let go then."""
        pieces: list[bytes] = []
        rope: bytes | Rope = self
        while isinstance(rope, Rope):
            parts = rope._parts
            if isinstance(parts, bytes):
                rope = parts
            else:
                rope, tail = parts
                pieces.append(tail)
        if not pieces:
            return rope
        pieces.append(rope)
        pieces.reverse()
        self._parts = whole = b"".join(pieces)
        return whole

    def tail_behind(self, start: bytes | Rope) -> bytes | None:
        """Give what was appended since the content was `start`, by identity; `None` if it never was that."""
        pieces: list[bytes] = []
        rope: bytes | Rope = self
        while isinstance(rope, Rope) and rope is not start:
            parts = rope._parts
            if isinstance(parts, bytes):
                return None
            rope, tail = parts
            pieces.append(tail)
        return b"".join(reversed(pieces)) if rope is start else None
