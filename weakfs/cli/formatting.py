"""Formatting of values for people: names on one line, times, amounts, paths of events."""

from __future__ import annotations

import os
import shlex

from rich.cells import cell_len

from weakfs.history.plain_values import moment as moment
from weakfs.messages import one_line


def shown(text: str) -> str:
    """Return text in a form that can be printed on one line, whatever it contains.

    Line breaks, control characters, escape sequences, bidirectional controls and spaces other than U+0020 are written
    as escapes, such as `\\n`, `\\x1b` and `\\u202e`. File names in a session contain no backslash, so the form of a
    name is unambiguous.
    """
    return one_line(text)


def typed(*words: str) -> str:
    """Return a command quoted for a shell, whatever bytes its words contain."""
    return " ".join(map(_typed_word, words))


def _typed_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b"\\'" else f"\\x{byte:02x}" for byte in os.fsencode(word))
    return f"$'{''.join(plain)}'"


def counted(number: int, thing: str, things: str | None = None) -> str:
    """Format an amount: `1 file`, `1,204 files`."""
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def date_and_time(at: int) -> str:
    """Format a time in integer nanoseconds briefly: month, day and time in UTC, in 14 characters."""
    whole = moment(at)
    return whole[5:19].replace("T", " ") if whole.endswith("Z") else shortened(whole, 14).rjust(14)


def shortened(text: str, width: int) -> str:
    """Cut out the middle of a text that is wider than `width` columns."""
    if cell_len(text) <= width:
        return text
    # Keep more of the end, which is the name in a path.
    room = (width - 1) // 3
    head = _beginning(text, room)
    tail = _beginning(text[::-1], width - 1 - room)[::-1]
    return f"{head}…{tail}"


def _beginning(text: str, width: int) -> str:
    """Return as much of the beginning of a text as fits into `width` columns."""
    taken = 0
    for place, character in enumerate(text):
        taken += cell_len(character)
        if taken > width:
            return text[:place]
    return text


def padded(text: str, width: int) -> str:
    """Fit a text into exactly `width` columns: cut out its middle, or pad it with spaces."""
    fitting = shortened(text, width)
    return fitting + " " * (width - cell_len(fitting))


def mode_text(mode: int, kind: str) -> str:
    """Format permission bits as `ls -l` does; `kind` is the leading letter."""
    bits = [letter if mode & (0o400 >> place) else "-" for place, letter in enumerate("rwxrwxrwx")]
    for place, special, letter in ((2, 0o4000, "s"), (5, 0o2000, "s"), (8, 0o1000, "t")):
        if mode & special:
            bits[place] = letter if bits[place] == "x" else letter.upper()
    return kind + "".join(bits)
