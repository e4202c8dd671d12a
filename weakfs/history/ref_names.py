"""Names of refs: any text as a part of the name of a branch or a tag."""

from __future__ import annotations

import re


def ref_part(text: str) -> str:
    """Return text as one part of the name of a ref, as git-check-ref-format allows it; other characters as %XX."""
    raw = text.encode("utf-8", "backslashreplace")
    name = "".join(chr(byte) if byte < 128 and re.match(r"[\w-]", chr(byte)) else f"%{byte:02X}" for byte in raw)
    return name or "%"
