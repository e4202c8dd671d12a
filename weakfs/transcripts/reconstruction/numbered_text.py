"""Texts as models are shown them: with a number before each line."""

from __future__ import annotations

import re

_LINE = re.compile(r" *(\d{1,9})(?:\u2192|\t)(.*)", re.DOTALL)
# What the program appends after the lines.
_REMINDER = "<system-reminder>"
# Lines longer than this are shown truncated.
_LONGEST = 2000


def read_numbered(shown: str) -> tuple[int, str] | None:
    """Return the number of the first line, and the text of all lines; None if some are not shown in full."""
    shown = shown.partition("\n" + _REMINDER)[0].rstrip("\n")
    first: int | None = None
    texts: list[str] = []
    for line in shown.split("\n"):
        found = _LINE.fullmatch(line)
        if found is None or len(found[2]) >= _LONGEST:
            return None
        number = int(found[1])
        if first is None:
            first = number
        elif number != first + len(texts):
            return None
        texts.append(found[2])
    return None if first is None else (first, "\n".join(texts))
