"""The context of each line of a text, brackets and multi-line strings, found without knowing the language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from weakfs.class_decorators import frozen

CLOSING = (")", "]", "}")
STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
TRIPLE_QUOTES = ('"""', "'''")


@frozen
class LineContext:
    """The context of a line: parentheses and square brackets opened on earlier lines, or a multi-line string."""

    depth: int
    in_string: bool


def contexts(texts: Sequence[str], in_string: bool) -> Iterator[LineContext]:
    """Yield the context in which each line begins: open brackets, and Python's multi-line strings."""
    changes = [0 if any(map(text.count, TRIPLE_QUOTES)) else _opened(text) for text in texts]
    # A bracket that is closed without being opened here is open from the start.
    depth = -min(0, *accumulate(changes, initial=0))
    for text, change in zip(texts, changes, strict=True):
        closes = 0 if in_string else _closed_first(text)
        yield LineContext(max(0, depth - closes), in_string)
        quotes = sum(map(text.count, TRIPLE_QUOTES))
        if not in_string:
            depth = max(0, depth + change)
        in_string ^= quotes % 2 == 1


def _closed_first(text: str) -> int:
    """Return the number of brackets that a line closes before anything else, as `});` closes one."""
    return len(text[: len(text) - len(text.lstrip(")]}"))].replace("}", ""))


def indent(line: str) -> str:
    """Return the white space at the start of a line."""
    return line[: len(line) - len(line.lstrip())]


def _opened(text: str) -> int:
    """Return the number of brackets that a line opens, minus those that it closes. Braces enclose blocks."""
    bare = STRING.sub("", text) if '"' in text or "'" in text else text
    return sum(map(bare.count, "([")) - sum(map(bare.count, ")]"))


def opened_at(text: str) -> int | None:
    """Return the column after the last bracket that a line leaves open, if text follows it there."""
    opened: list[int] = []
    for at, char in enumerate(text):
        if char in "([{":
            opened.append(at)
        elif char in CLOSING and opened:
            opened.pop()
    if not opened or not text[opened[-1] + 1 :].strip():
        return None
    return opened[-1] + 1
