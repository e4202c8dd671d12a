"""Bytes that grow at their end: pieces, joined when somebody reads."""

from __future__ import annotations

from hashlib import sha256
from itertools import chain

from weakfs.session.blobs.blob import Stored


class Rope:
    """A content and its tail. 5,000 appends of 1 kB cost what they add, not 12.5 GB of copies.

    What grows from a content that lies elsewhere keeps its pieces: it is read again each time, and held never.
    """

    __slots__ = ("_length", "_parts", "start")

    # One field, so that a thread that reads while another joins sees the pieces or the whole.
    _parts: bytes | tuple[Content, bytes]

    def __init__(self, base: Content, tail: bytes) -> None:
        self._parts = (base, tail)
        self._length = len(base) + len(tail)
        # The content elsewhere that it begins with, if it does.
        self.start: Stored | None = base.start if type(base) is Rope else base if type(base) is Stored else None

    def __len__(self) -> int:
        return self._length

    @property
    def is_joined(self) -> bool:
        """Whether it is held in one piece, so that joining it costs nothing."""
        return isinstance(self._parts, bytes)

    def join(self) -> bytes:
        """Give the whole content. O(length) the first time; the pieces are let go then, unless some lie elsewhere."""
        first, pieces = self._pieces()
        if type(first) is Stored:
            return b"".join((first.join(), *pieces))
        if not pieces:
            return joined(first)
        self._parts = whole = b"".join((joined(first), *pieces))
        return whole

    def digest(self) -> bytes:
        """Return what the content is known by (see `digest_of`), without holding it in one piece. O(length)."""
        found = sha256(b"blob %d\0" % self._length)
        first, pieces = self._pieces()
        for piece in chain(first.pieces() if type(first) is Stored else (first,), pieces):
            found.update(piece)
        return found.digest()

    def tail(self) -> bytes:
        """Give what stands behind `start`, or the whole content where there is none."""
        return self.join() if self.start is None else b"".join(self._pieces()[1])

    def tail_behind(self, start: Content) -> bytes | None:
        """Give what was appended since the content was `start`, by identity; `None` if it never was that."""
        pieces: list[bytes] = []
        rope: Content = self
        while isinstance(rope, Rope) and rope is not start:
            parts = rope._parts
            if isinstance(parts, bytes):
                return None
            rope, tail = parts
            pieces.append(tail)
        return b"".join(reversed(pieces)) if rope is start else None

    def _pieces(self) -> tuple[bytes | Stored, list[bytes]]:
        pieces: list[bytes] = []
        rope: Content = self
        while isinstance(rope, Rope):
            parts = rope._parts
            if isinstance(parts, bytes):
                rope = parts
            else:
                rope, tail = parts
                pieces.append(tail)
        pieces.reverse()
        return rope, pieces


# What a file holds: bytes at hand, bytes that grew, or bytes that lie elsewhere.
Content = bytes | Rope | Stored


def joined(content: Content) -> bytes:
    """Give a content in one piece."""
    return content if isinstance(content, bytes) else content.join()


def parted(content: Content) -> tuple[Stored | None, bytes]:
    """Give a content as what lies elsewhere and the bytes behind it; reads nothing that lies elsewhere.

    Contents that are equal in both parts are equal.
    """
    if isinstance(content, bytes):
        return None, content
    return (content.start, content.tail()) if isinstance(content, Rope) else (content, b"")
