"""Recorded hunks: Claude Code's `structuredPatch` and Codex's `unified_diff`, and their exact application."""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import StringIO

from weakfs.class_decorators import frozen
from weakfs.transcripts.json_lines import as_list, fields_of, items_of

_HEAD = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_UNENDED = "\\"


@frozen
class Hunk:
    """Lines with their line endings, from line `start` (from 1) of the old text on, and the lines that replace them."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def read_structured(value: object) -> tuple[Hunk, ...] | None:
    """Parse a `structuredPatch`; `None` if it is invalid or empty."""
    hunks: list[Hunk] = []
    for fields in map(fields_of, items_of(value)):
        start, lines = fields.get("oldStart"), as_list(fields.get("lines"))
        if not isinstance(start, int) or lines is None:
            return None
        texts = [line for line in lines if isinstance(line, str)]
        hunk = _hunk(start, fields.get("oldLines") == 0, texts)
        if hunk is None or len(texts) != len(lines):
            return None
        hunks.append(hunk)
    return tuple(hunks) or None


def read_unified(text: str) -> tuple[Hunk, ...] | None:
    """Parse the hunks of a unified diff of one file; `None` if it is invalid."""
    hunks: list[Hunk] = []
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    at = 0
    while at < len(lines):
        head = _HEAD.match(lines[at])
        at += 1
        if head is None:
            if hunks:
                return None
            continue
        old, new = (1 if head[place] is None else _count(head[place]) for place in (2, 4))
        first = at
        while at < len(lines) and (old > 0 or new > 0 or lines[at].startswith(_UNENDED)):
            mark = lines[at][:1]
            old -= mark in ("-", " ", "")
            new -= mark in ("+", " ", "")
            at += 1
        hunk = _hunk(_count(head[1]), head[2] == "0", lines[first:at])
        if hunk is None or old or new:
            return None
        hunks.append(hunk)
    return tuple(hunks) or None


def _count(digits: str) -> int:
    # No file has more lines than this, and parsing a million digits takes minutes.
    return int(digits[:18])


def _hunk(start: int, is_insertion: bool, lines: Iterable[str]) -> Hunk | None:
    old: list[str] = []
    new: list[str] = []
    last: tuple[list[str], ...] = ()
    for line in lines:
        mark, text = line[:1], line[1:] + "\n"
        if mark == _UNENDED:
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
            last = ()
            continue
        if mark not in ("", " ", "-", "+"):
            return None
        last = (old,) if mark == "-" else (new,) if mark == "+" else (old, new)
        for side in last:
            side.append(text)
    # The header of a pure insertion gives the line after which the text goes, not the line before which it goes.
    return Hunk(start + 1 if is_insertion and not old else start, tuple(old), tuple(new))


def lines_of(text: str) -> list[str]:
    """Split a text at `\\n` and nothing else, keeping the line endings."""
    return StringIO(text, newline="\n").readlines()


def apply_hunks(text: str, hunks: Iterable[Hunk]) -> str | None:
    """Return the text with hunks applied at their stated lines; `None` if one does not match exactly. O(text)."""
    lines = lines_of(text)
    made: list[str] = []
    at = 0
    for hunk in hunks:
        start = max(hunk.start - 1, 0)
        stop = start + len(hunk.old)
        if start < at or stop > len(lines) or lines[start:stop] != list(hunk.old):
            return None
        if lines and not hunk.old:
            # Hunks have context, so one without old lines belongs to a file that was empty.
            return None
        made += lines[at:start]
        made += hunk.new
        at = stop
    return "".join(made + lines[at:])
