"""What a file held: a text, nothing because it was not there, or unknown."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

from attrs import frozen

BYTE_ORDER_MARK = "\ufeff"


class Unknown(Enum):
    """The one value of what is not recorded."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN

# `None` stands for a file that was not there.
Text: TypeAlias = str | Unknown | None


@frozen
class Difference:
    """The first place where a file is not what is recorded: the byte, from 0, and the line, from 1."""

    path: str
    offset: int
    line: int


def with_plain_line_ends(text: str) -> str:
    """Give `text` with `\\n` for `\\r\\n`."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def as_programs_tell(text: str) -> str:
    """Give `text` as the programs write it down: some leave out the byte order mark, and all know one line end."""
    return with_plain_line_ends(text).removeprefix(BYTE_ORDER_MARK)


def is_same(held: Text, told: Text) -> bool:
    """Tell whether a file may be said to hold what a program told of it."""
    if isinstance(held, str) and isinstance(told, str):
        return told in (held, with_plain_line_ends(held)) or told == as_programs_tell(held)
    return held is told


def first_difference(path: str, ours: Text, theirs: Text) -> Difference:
    """Find the first byte in which two texts differ. O(text)."""
    one = (ours if isinstance(ours, str) else "").encode()
    other = (theirs if isinstance(theirs, str) else "").encode()
    same = common_prefix(one, other)
    return Difference(path, same, one.count(b"\n", 0, same) + 1)


def common_prefix(one: bytes, other: bytes) -> int:
    """Count the bytes that two texts begin with alike, by halves rather than by bytes."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
