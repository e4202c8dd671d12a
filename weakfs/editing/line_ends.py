"""Line endings: the kinds that a text has, and conversion to one kind."""

from __future__ import annotations

import re

LINE_END = re.compile("\r\n|\r|\n")


def only_kind(text: str) -> str | None:
    """Return the only kind of line ending in a text, or `None` if it has several or none. O(text)."""
    if "\r" not in text:
        return "\n" if "\n" in text else None
    returns, feeds, both = text.count("\r"), text.count("\n"), text.count("\r\n")
    if returns == feeds == both:
        return "\r\n"
    return "\r" if feeds == 0 else None


def with_line_ends(text: str, kind: str | None) -> str:
    """Return a text with all line endings converted to this kind; unchanged if it is `None`."""
    if kind is None or not ("\n" in text or "\r" in text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if kind == "\n" else text.replace("\n", kind)
