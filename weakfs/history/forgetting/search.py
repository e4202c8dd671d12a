"""Searching files for a text in every form: as bytes, escaped, in base64 or hexadecimal, and in compressed data."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator

from weakfs.history.forgetting.redaction import forms_of, found_in

# The first bytes of zlib and gzip data.
_COMPRESSED = re.compile(rb"\x78[\x01\x5e\x9c\xda]|\x1f\x8b\x08")
# How much of compressed data is searched.
MOST = 1 << 30
_PIECE = 1 << 20


def files_with(text: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files among `paths`, and below the directories among them, that hold a text in any form."""
    return files_with_forms(tuple(forms_of(text)), paths)


def files_with_forms(forms: tuple[bytes, ...], paths: Iterable[str]) -> tuple[str, ...]:
    """Return the files that hold any of some forms. Symbolic links are not followed."""
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
    """Return whether compressed data in some bytes, such as an archive in a file, holds any of some forms."""
    return any(_holds(data, start.start(), forms) for start in _COMPRESSED.finditer(data))


def _holds(data: bytes, start: int, forms: tuple[bytes, ...]) -> bool:
    """Return whether what may be compressed data at an offset holds any form."""
    reader = zlib.decompressobj(zlib.MAX_WBITS | 32)
    rest, before, total = data[start:], b"", 0
    longest = max(map(len, forms), default=0)
    try:
        while not reader.eof and total < MOST:
            piece = reader.decompress(rest, _PIECE)
            rest = reader.unconsumed_tail
            if not piece:
                break
            if found_in(before + piece, forms):
                return True
            before, total = piece[-longest:], total + len(piece)
    except zlib.error:
        # It was none, or was cut off.
        return False
    return False
