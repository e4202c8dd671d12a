"""Formatting as the reference server does it: sizes, times, sorted names and differences. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime
from unicodedata import normalize

from weakfs.editing.unified_hunks import hunk_bodies
from weakfs.reducers.merging.line_merge import split_lines

CONTEXT = 4
_UNITS = ("B", "KB", "MB", "GB", "TB")

# The order of ASCII in ICU's root collation: white space and punctuation, symbols, digits, then letters.
_ORDER = {char: place for place, char in enumerate(" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789")}


def size_text(size: int) -> str:
    """Return a size as the reference server does: `1.50 KB`."""
    if size <= 0:
        return "0 B"
    step = int(math.log(size) / math.log(1024))
    if step == 0:
        return f"{size} B"
    return f"{size / 1024 ** min(step, len(_UNITS) - 1):.2f} {_UNITS[min(step, len(_UNITS) - 1)]}"


def time_text(at: float) -> str:
    """Return a time in seconds as JavaScript's `Date` prints it, in the local time zone."""
    local = datetime.fromtimestamp(at).astimezone()
    zone = "Coordinated Universal Time" if local.tzname() == "UTC" else local.tzname()
    return f"{local:%a %b %d %Y %H:%M:%S} GMT{local:%z} ({zone})"


def collation_key(name: str) -> tuple[object, ...]:
    """Return a key that sorts names as JavaScript's `localeCompare` does, exactly for ASCII."""
    plain = normalize("NFD", name)
    first = tuple((0, _ORDER[char]) if char in _ORDER else (1, ord(char)) for char in plain.casefold())
    # Of letters that differ only in case, lowercase comes first.
    return first, tuple(char.isupper() for char in plain), name


def lf(text: str) -> str:
    """Return a text with `\\r\\n` replaced by `\\n`."""
    return text.replace("\r\n", "\n")


def edited(text: str, old: str, new: str) -> str | None:
    """Return a text with the first match replaced: an exact one or, failing that, one that ignores indentation."""
    if old in text:
        return text.replace(old, new, 1)
    wanted, lines = old.split("\n"), text.split("\n")
    trimmed = [line.strip() for line in wanted]
    for start in range(len(lines) - len(wanted) + 1):
        if [line.strip() for line in lines[start : start + len(wanted)]] == trimmed:
            indent = _indent(lines[start])
            put_in = [
                _indented(place, line, wanted[place] if place < len(wanted) else "", indent)
                for place, line in enumerate(new.split("\n"))
            ]
            return "\n".join((*lines[:start], *put_in, *lines[start + len(wanted) :]))
    return None


def _indented(place: int, line: str, old: str, indent: str) -> str:
    if place == 0:
        return indent + line.lstrip()
    before, after = _indent(old), _indent(line)
    return indent + " " * max(0, len(after) - len(before)) + line.lstrip() if before and after else line


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def fenced_diff(name: str, before: str, after: str) -> str:
    """Return the difference of two texts with LF line endings in a code fence, as the reference server does."""
    old, new = (split_lines(text.encode("utf-8", "surrogatepass")) for text in (before, after))
    head = f"Index: {name}\n{'=' * 67}\n--- {name}\toriginal\n+++ {name}\tmodified\n"
    diff = head + b"".join(_hunks(old, new)).decode("utf-8", "surrogatepass")
    fence = "```"
    while fence in diff:
        fence += "`"
    return f"{fence}diff\n{diff}{fence}\n\n"


def _hunks(old: list[bytes], new: list[bytes]) -> Iterator[bytes]:
    for (start, stop, new_start, new_stop), lines in hunk_bodies(old, new, CONTEXT):
        yield b"@@ -%s +%s @@\n" % (_range(start, stop), _range(new_start, new_stop))
        yield from lines


def _range(start: int, stop: int) -> bytes:
    return b"%d,%d" % (start + 1 if stop > start else start, stop - start)
