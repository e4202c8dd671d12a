"""Escaping of names: converts the bytes in a host's names that are not text to characters, and back.

A literal backslash and bytes that are not UTF-8 appear as U+F700 plus the byte. The characters U+F700 to
U+F7FF in a host's names are escaped byte by byte in the same way, so that every name has exactly one escaped form
and every escaped form stands for exactly one name.
"""

from __future__ import annotations

import re

FIRST = 0xF700

_ODD = re.compile("[\\\\\udc80-\udcff\uf700-\uf7ff]")
_ESCAPED = re.compile("[\uf700-\uf7ff]")


def from_bytes(raw: bytes) -> str:
    """Return the canonical form of a host's name."""
    text = raw.decode("utf-8", "surrogateescape")
    return _ODD.sub(_escape, text) if _ODD.search(text) else text


def to_bytes(name: str) -> bytes:
    """Return the host's bytes for a canonical name; a form that `from_bytes` never returns is taken literally."""
    if not _ESCAPED.search(name):
        return name.encode("utf-8", "surrogatepass")
    raw = b"".join(_unescape(char) for char in name)
    return raw if from_bytes(raw) == name else name.encode("utf-8", "surrogatepass")


def has_escapes(text: str) -> bool:
    """Return whether a name or a path may contain escapes, so that its bytes are not those of its characters."""
    return _ESCAPED.search(text) is not None


def canonical(name: str) -> str:
    """Return the canonical form of the name with the same bytes; most names are their own canonical form."""
    # A text object knows whether it is ASCII; the search takes 5 ns a character.
    return name if name.isascii() or not _ESCAPED.search(name) else from_bytes(to_bytes(name))


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    raw = char.encode("utf-8", "surrogateescape")
    return "".join(chr(FIRST + byte) for byte in raw)


def _unescape(char: str) -> bytes:
    code = ord(char)
    return bytes((code - FIRST,)) if FIRST <= code <= FIRST + 255 else char.encode("utf-8", "surrogatepass")
