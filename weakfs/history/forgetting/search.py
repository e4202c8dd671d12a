"""Searching files for a text in every form: as bytes, escaped, in base64 or hexadecimal, and in compressed data."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from weakfs.history.forgetting.text_redaction import found_in

# The first bytes of zlib and gzip data.
_COMPRESSED = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08")
_LONGEST_MARK = 3
# How much compressed data in one file is searched: this many bytes, and this many times the size of the file.
MOST = 1 << 30
_FACTOR = 64
# How many bytes are decompressed at first, and at a time after that. Few at first, because most data that looks
# compressed is not.
_FIRST, _INPUT = 1 << 9, 1 << 16
_PIECE = 1 << 20

Read = Callable[[int, int], bytes]


def files_with_forms(forms: tuple[bytes, ...], paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files that contain any of the forms. Symbolic links are not followed."""
    found: list[str] = []
    for path in sorted(dict.fromkeys(_files(paths))):
        if found_in(os.fsencode(os.path.basename(path)), forms):
            found.append(path)
            continue
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if is_in(size, partial(os.pread, file.fileno()), forms):
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


def is_in_bytes(data: bytes, forms: tuple[bytes, ...]) -> bool:
    """Return whether some bytes contain any of the forms: see `is_in`."""
    return is_in(len(data), lambda size, at: data[at : at + size], forms)


def is_in(size: int, read: Read, forms: tuple[bytes, ...]) -> bool:
    """Return whether bytes, or compressed data in them such as an archive in a file, contain any of the forms.

    `read(size, offset)` returns a piece, and one piece is in memory at a time. The work is limited to O(bytes), because
    data that only looks compressed may begin anywhere, and each such place could otherwise be decompressed to the end.
    """
    longest = max(map(len, forms), default=1)
    # Each piece overlaps the next one, so that no form, and no beginning of compressed data, is split.
    overlap = max(longest, _LONGEST_MARK)
    for at in range(0, size, _PIECE):
        if found_in(read(_PIECE + overlap, at), forms):
            return True
    left = MOST + _FACTOR * size
    for at in range(0, size, _PIECE):
        for start in _COMPRESSED.finditer(read(_PIECE + _LONGEST_MARK - 1, at)):
            before = b""
            for piece in _decompressed(size, read, at + start.start()) if start.start() < _PIECE else ():
                if found_in(before + piece, forms):
                    return True
                before = (before + piece)[-longest:]
                left -= _FIRST + len(piece)
                if left < 0:
                    return False
    return False


def _decompressed(end: int, read: Read, at: int) -> Iterator[bytes]:
    """Decompress what may be compressed data in pieces, up to its end or the first error; some pieces are empty."""
    reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
    size = _FIRST
    try:
        while at < end and not reader.eof:
            rest = read(size, at)
            at, size = at + size, _INPUT
            piece = reader.decompress(rest, _PIECE)
            yield piece
            while piece:
                piece = reader.decompress(reader.unconsumed_tail, _PIECE)
                yield piece
    except zlib.error:
        # The data is not compressed, or is truncated.
        return
