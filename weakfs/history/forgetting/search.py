"""Searching files for a text in every form: as bytes, escaped, in base64 or hexadecimal, and in compressed data."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator

from weakfs.history.forgetting.redaction import found_in

# The first bytes of zlib and gzip data.
_COMPRESSED = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08")
# How much compressed data in one file is searched: this many bytes, and this many times the size of the file.
MOST = 1 << 30
_FACTOR = 64
# How many bytes are decompressed at first, and at a time after that. Few at first, because most data that looks
# compressed is not.
_FIRST, _INPUT = 1 << 9, 1 << 16
_PIECE = 1 << 20


def files_with_forms(forms: tuple[bytes, ...], paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files that contain any of the forms. Symbolic links are not followed."""
    found: list[str] = []
    for path in sorted(dict.fromkeys(_files(paths))):
        with open(path, "rb") as file:
            data = file.read()
        names = os.fsencode(os.path.basename(path))
        if found_in(data, forms) or found_in(names, forms) or is_in_compressed(data, forms):
            found.append(path)
    return tuple(found)


def _files(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            for folder, _, names in os.walk(path):
                yield from (one for name in names if _is_regular(one := os.path.join(folder, name)))
        elif os.path.lexists(path) and _is_regular(path):
            yield path


def _is_regular(path: str) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)


def is_in_compressed(data: bytes, forms: tuple[bytes, ...]) -> bool:
    """Return whether compressed data in some bytes, such as an archive in a file, contains any of the forms.

    The work is limited to O(bytes), because data that only looks compressed may begin anywhere, and each such place
    could otherwise be decompressed to the end.
    """
    view, left = memoryview(data), MOST + _FACTOR * len(data)
    longest = max(map(len, forms), default=1)
    for start in _COMPRESSED.finditer(data):
        before = b""
        for piece in _decompressed(view[start.start() :]):
            if found_in(before + piece, forms):
                return True
            before = (before + piece)[-longest:]
            left -= _FIRST + len(piece)
            if left < 0:
                return False
    return False


def _decompressed(data: memoryview) -> Iterator[bytes]:
    """Decompress what may be compressed data in pieces, up to its end or the first error; some pieces are empty."""
    reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
    at, size = 0, _FIRST
    try:
        while at < len(data) and not reader.eof:
            rest: bytes | memoryview = data[at : at + size]
            at, size = at + size, _INPUT
            piece = reader.decompress(rest, _PIECE)
            yield piece
            while piece:
                piece = reader.decompress(reader.unconsumed_tail, _PIECE)
                yield piece
    except zlib.error:
        # It is not compressed data, or it is truncated.
        return
