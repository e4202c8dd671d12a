"""The lines of a journal's files: each has a checksum of its text and its place, so that no damage goes unnoticed.

See docs/formats/undo-journal.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO
from zlib import crc32

# No line has this many bytes.
LONGEST = 1 << 26
# Lines that begin like this have no checksum: earlier versions wrote none.
UNCHECKED = (b"{", b"disk ", b"journal ")
# The bits of an offset with which a checksum is seeded.
MASK = (1 << 32) - 1


def checked_line(text: bytes, offset: int) -> bytes:
    """Return the line for a text, to be written at an offset of the file."""
    return b"%08x %s\n" % (crc32(text, offset & MASK), text)


def read_lines(stream: IO[bytes], offset: int = 0) -> Iterator[tuple[bytes, int]]:
    """Yield the text of each line and the length of the line. The stream is at `offset`.

    A truncated last line is ignored: what it announces did not happen. Raises `ValueError` for a damaged one.
    """
    while (line := stream.readline(LONGEST)).endswith(b"\n"):
        text = line[:-1]
        if not text.startswith(UNCHECKED):
            if not _is_sound(text, offset):
                raise ValueError("its checksum does not match")
            text = text[9:]
        yield text, len(line)
        offset += len(line)
    if len(line) == LONGEST:
        raise ValueError(f"it has {LONGEST} bytes or more")
    if _is_sound(line[:-1], offset):
        raise ValueError("its last byte was changed")


def _is_sound(line: bytes, offset: int) -> bool:
    return line[:9] == b"%08x " % crc32(line[9:], offset & MASK)
