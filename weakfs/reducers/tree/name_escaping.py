"""Escaping of names: converts the bytes in a host's names that are not text to characters, and back.

A literal backslash and bytes that are not UTF-8 appear as U+F700 plus the byte. The characters U+F700 to
U+F7FF in a host's names are escaped byte by byte in the same way, so that every name has exactly one escaped form
and every escaped form stands for exactly one name.
"""

from __future__ import annotations

import re
from functools import cache

FIRST = 0xF700

# Sets of characters.
_ESCAPES = "\uf700-\uf7ff"
_ODD = "\\\\\udc80-\udcff" + _ESCAPES


@cache
def _one_of(characters: str) -> re.Pattern[str]:
    # Compiled when first needed: it takes 2 % of the time of a new process that writes and reads a file with a plain
    # name.
    return re.compile(f"[{characters}]")


def from_bytes(raw: bytes) -> str:
    """Return the canonical form of a host's name."""
    text = raw.decode("utf-8", "surrogateescape")
    if text.isascii() and "\\" not in text:
        return text
    return _one_of(_ODD).sub(_escape, text)


def to_bytes(name: str) -> bytes:
    """Return the host's bytes for a canonical name; a form that `from_bytes` never returns is taken literally."""
    if not has_escapes(name):
        return name.encode("utf-8", "surrogatepass")
    raw = b"".join(_unescape(char) for char in name)
    return raw if from_bytes(raw) == name else name.encode("utf-8", "surrogatepass")


def has_escapes(text: str) -> bool:
    """Return whether a name or a path may contain escapes, so that its bytes are not those of its characters."""
    # A text object knows whether it is ASCII; the search takes 5 ns a character.
    return not text.isascii() and _one_of(_ESCAPES).search(text) is not None


def canonical(name: str) -> str:
    """Return the canonical form of the name with the same bytes; most names are their own canonical form."""
    return from_bytes(to_bytes(name)) if has_escapes(name) else name


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    raw = char.encode("utf-8", "surrogateescape")
    return "".join(chr(FIRST + byte) for byte in raw)


def _unescape(char: str) -> bytes:
    code = ord(char)
    return bytes((code - FIRST,)) if FIRST <= code <= FIRST + 255 else char.encode("utf-8", "surrogatepass")
