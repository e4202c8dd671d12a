"""Ref names: any text as a part of the name of a branch or a tag."""

from __future__ import annotations

import re


def ref_part(text: str) -> str:
    """Return text as one part of a ref name; characters that git-check-ref-format does not allow become %XX."""
    raw = text.encode("utf-8", "backslashreplace")
    name = "".join(chr(byte) if byte < 128 and re.match(r"[\w-]", chr(byte)) else f"%{byte:02X}" for byte in raw)
    return name or "%"
