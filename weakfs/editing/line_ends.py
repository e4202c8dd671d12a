"""Line ends: which kinds a text has, and texts with line ends of one kind."""

from __future__ import annotations

import re

LINE_END = re.compile("\r\n|\r|\n")


def only_kind(text: str) -> str | None:
    """Give the one kind of line end that a text has, `None` if it has several or none. O(text)."""
    if "\r" not in text:
        return "\n" if "\n" in text else None
    returns, feeds, both = text.count("\r"), text.count("\n"), text.count("\r\n")
    if returns == feeds == both:
        return "\r\n"
    return "\r" if feeds == 0 else None


def with_line_ends(text: str, kind: str | None) -> str:
    """Give a text with every line end of that kind, as it is for `None`."""
    if kind is None or not ("\n" in text or "\r" in text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if kind == "\n" else text.replace("\n", kind)
