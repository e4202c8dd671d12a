"""A spool: large parts of a JSON document on their way to a file, kept out of memory.

The document of a million calls takes 2 GB, and its session 0.3 GB.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import SEEK_END
from tempfile import TemporaryFile
from typing import IO, Any

import orjson

from weakfs.session.codec.encoder import AS_IT_IS
from weakfs.session.files.atomic_write import unsaved

# Up to this much text is kept in memory; the rest goes to an unnamed file, except for small pieces.
IN_MEMORY = 1 << 24
SMALL = 1 << 16
# How many items of a list are serialized at once.
BATCH = 4096
# Longer text is serialized in pieces of this many characters. orjson reserves eight times the size of a text, and if
# the system cannot provide a block of that size, the process ends with a segmentation fault.
LONG = 1 << 16

# Text in memory, or its offset and size in the file.
Piece = bytes | tuple[int, int]


class Spool:
    """Keeps text until it is written: in memory, or in a file in `folder` once it is large (`None`: only memory)."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._held = 0

    def put(self, text: bytes) -> Piece:
        """Store text and return the piece to read it back with."""
        if self._folder is None or len(text) < SMALL or self._held + len(text) <= IN_MEMORY:
            self._held += len(text)
            return text
        try:
            if self._file is None:
                self._file = TemporaryFile(dir=self._folder)  # noqa: SIM115  # `close` closes it
            place = self._file.seek(0, SEEK_END)
            self._file.write(text)
        except OSError as error:
            raise unsaved(self._folder, error) from error
        return place, len(text)

    def get(self, piece: Piece) -> bytes:
        """Return the text of a piece."""
        if isinstance(piece, bytes):
            return piece
        if self._file is None:
            raise ValueError("the spool was closed")
        self._file.seek(piece[0])
        return self._file.read(piece[1])

    def close(self) -> None:
        """Close and delete the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


class JsonArray:
    """A JSON array that is written item by item and read back as text."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._pieces: list[Piece] = []

    def add(self, items: Sequence[bytes]) -> None:
        """Add items, each the text of one JSON value or of several separated by commas."""
        if items:
            self._pieces.append(self._spool.put(b",".join(items)))

    def pieces(self) -> Iterator[bytes]:
        """Yield the text of the array piece by piece."""
        before = b"["
        for piece in self._pieces:
            yield before
            yield self._spool.get(piece)
            before = b","
        yield b"]" if self._pieces else b"[]"


class JsonObject:
    """A JSON object whose values may be spooled parts."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields

    def pieces(self) -> Iterator[bytes]:
        """Yield the text of the object piece by piece."""
        before = b"{"
        for name, value in self.fields.items():
            yield before + orjson.dumps(name) + b":"
            yield from pieces_of(value)
            before = b","
        yield b"}" if self.fields else b"{}"


def pieces_of(value: Any) -> Iterator[bytes]:
    """Yield the JSON text of a value piece by piece: a part, a list that may hold parts, long text, or plain values."""
    if isinstance(value, JsonArray | JsonObject):
        yield from value.pieces()
    elif type(value) is str and len(value) > LONG:
        yield b'"'
        for start in range(0, len(value), LONG):
            yield orjson.dumps(value[start : start + LONG], option=AS_IT_IS)[1:-1]
        yield b'"'
    elif type(value) is dict and _is_written_in_parts(value):
        yield from JsonObject(value).pieces()
    elif type(value) is list and (len(value) > BATCH or _holds_parts(value)):
        before = b"["
        for start in range(0, len(value), BATCH):
            batch = value[start : start + BATCH]
            if _holds_parts(batch):
                for item in batch:
                    yield before
                    yield from pieces_of(item)
                    before = b","
            else:
                yield before + orjson.dumps(batch, option=AS_IT_IS)[1:-1]
                before = b","
        yield b"]"
    else:
        yield orjson.dumps(value, option=AS_IT_IS)


def _holds_parts(items: list[Any]) -> bool:
    """Return whether one of the items of a list is written in parts."""
    if {*map(type, items)} == {str}:
        return max(map(len, items)) > LONG
    return any(map(_is_written_in_parts, items))


def _is_written_in_parts(item: Any) -> bool:
    """Return whether an item of a list is a part, or a blob with long text."""
    if type(item) is str:
        return len(item) > LONG
    if type(item) is dict:
        return any(type(value) in (str, dict) and _is_written_in_parts(value) for value in item.values())
    return isinstance(item, JsonObject)
