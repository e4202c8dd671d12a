"""The contents of a file: a text, `None` if it did not exist, or unknown."""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

from weakfs.class_decorators import frozen
from weakfs.reducers.merging.line_merge import common_ends

BYTE_ORDER_MARK = "\ufeff"


class Unknown(Enum):
    """The type of the single value for contents that are not recorded."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN

# `None` means a file that did not exist.
Text: TypeAlias = str | Unknown | None


@frozen
class Difference:
    """The first place where a file differs from the recording: the byte, from 0, and the line, from 1."""

    path: str
    offset: int
    line: int


def with_plain_line_ends(text: str) -> str:
    """Return `text` with `\\r\\n` replaced by `\\n`."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def as_programs_show(text: str) -> str:
    """Return `text` as programs record it: with `\\n` as the only line ending, and without a byte order mark."""
    return with_plain_line_ends(text).removeprefix(BYTE_ORDER_MARK)


def is_same(held: Text, recorded: Text) -> bool:
    """Return whether a file's contents are consistent with what a program recorded of it."""
    if isinstance(held, str) and isinstance(recorded, str):
        return recorded in (held, with_plain_line_ends(held)) or recorded == as_programs_show(held)
    return held is recorded


def first_difference(path: str, ours: Text, theirs: Text) -> Difference:
    """Return the position of the first byte in which two texts differ. O(text)."""
    one = (ours if isinstance(ours, str) else "").encode()
    other = (theirs if isinstance(theirs, str) else "").encode()
    same, _ = common_ends(one, other)
    return Difference(path, same, one.count(b"\n", 0, same) + 1)
