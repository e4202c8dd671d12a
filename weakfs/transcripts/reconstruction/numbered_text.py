"""Texts as they are shown to models, with a number before each line."""

from __future__ import annotations

import re

_LINE = re.compile(r" *(\d{1,9})(?:\u2192|\t)(.*)", re.DOTALL)
# What the program appends after the lines.
_REMINDER = "<system-reminder>"
# Lines longer than this are shown truncated.
_LONGEST = 2000


def numbered_lines(shown: str, line: re.Pattern[str]) -> tuple[int, tuple[str, ...]] | None:
    """Return the number of the first line, and all lines of a text whose lines match `line`: a number and the rest.

    Returns `None` for any other text, and if the numbers are not consecutive.
    """
    found = [line.fullmatch(one) for one in shown.split("\n")]
    lines = [(int(one[1]), one[2]) for one in found if one is not None]
    if len(lines) != len(found) or any(number != at for at, (number, _) in enumerate(lines, lines[0][0])):
        return None
    return lines[0][0], tuple(text for _, text in lines)


def read_numbered(shown: str) -> tuple[int, str] | None:
    """Return the number of the first line, and the text of all lines; `None` if some are not shown in full."""
    found = numbered_lines(shown.partition("\n" + _REMINDER)[0].rstrip("\n"), _LINE)
    if found is None or any(len(line) >= _LONGEST for line in found[1]):
        return None
    return found[0], "\n".join(found[1])
