"""In what each line of a text stands, read lightly and without knowing the language: brackets and long strings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from attrs import frozen

CLOSING = (")", "]", "}")
STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
TRIPLE_QUOTES = ('"""', "'''")


@frozen
class LineContext:
    """In what a line stands: brackets that were opened on lines before it, or a string of several lines."""

    depth: int
    in_string: bool


def contexts(texts: Sequence[str], in_string: bool) -> Iterator[LineContext]:
    """Give for each line in what it begins, read lightly: brackets, and the strings of Python that span lines."""
    changes = [0 if any(map(text.count, TRIPLE_QUOTES)) else _opened(text) for text in texts]
    # What is closed and was not opened here is open from the start.
    depth = -min(0, *accumulate(changes, initial=0))
    for text, change in zip(texts, changes, strict=True):
        closes = not in_string and text[:1] in CLOSING
        yield LineContext(max(0, depth - closes), in_string)
        quotes = sum(map(text.count, TRIPLE_QUOTES))
        if not in_string:
            depth = max(0, depth + change)
        in_string ^= quotes % 2 == 1


def _opened(text: str) -> int:
    """Count the brackets that a line opens, less those that it closes."""
    bare = STRING.sub("", text) if '"' in text or "'" in text else text
    return sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))


def opened_at(text: str) -> int | None:
    """Give the column behind the last bracket that a line leaves open, where text stands behind it."""
    opened: list[int] = []
    for at, char in enumerate(text):
        if char in "([{":
            opened.append(at)
        elif char in CLOSING and opened:
            opened.pop()
    if not opened or not text[opened[-1] + 1 :].strip():
        return None
    return opened[-1] + 1
