"""Transcripts that are JSON documents, an array or objects spanning several lines, instead of one object per line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from weakfs.transcripts.json_lines import (
    Line,
    NotJson,
    Value,
    as_list,
    as_object,
    decode,
    numbered_lines,
    parse_at,
    parse_json,
    values_in,
)
from weakfs.transcripts.records import Skipped

_WHITE_SPACE = " \t\r\n"
# The beginnings of a document whose first line contains nothing else.
_OPENINGS = (b"[", b"{", b"[{", b"[[")


def document_entries(file: BinaryIO, *, max_bytes: int) -> list[Line | Skipped] | None:
    """Return the positions of the messages in a JSON document, or `None` for a file with one object per line.

    The messages are those of an array, or the objects of a file such as `jq .` writes. A document that cannot be read
    is one `Skipped`, whatever the number of its lines. The file is positioned at its beginning before and after.
    O(file), and the file is held in memory in the meantime; if the first two lines show that it is not a document, it
    is not read.
    """
    is_candidate, is_certain = _sniff(file, max_bytes)
    file.seek(0)
    if not is_candidate:
        return None
    data = file.read(max_bytes + 1) if os.fstat(file.fileno()).st_size <= max_bytes else None
    file.seek(0)
    if data is None:
        reason = "the file is one JSON document that is too long to be read; write one message per line"
        return [Skipped(1, reason)] if is_certain else None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return [_unreadable(1, f"the byte at offset {error.start} is not UTF-8")] if is_certain else None
    found = [*_entries(text)]
    wrong = next((one for one in found if isinstance(one.value, NotJson)), None)
    if wrong is not None and isinstance(wrong.value, NotJson):
        at = wrong.start if wrong.value.offset is None else wrong.value.offset
        line = text.count("\n", 0, at) + 1
        return [_unreadable(line, wrong.value.reason)] if is_certain else None
    return [*_lines(text, found, len(data) - len(text.encode()))]


def count_lines(file: BinaryIO) -> int:
    """Count the lines of a file from its current position, including a last line without a line ending."""
    return sum(1 for _ in file)


def _unreadable(line: int, reason: str) -> Skipped:
    return Skipped(
        line, f"the file is one JSON document and cannot be read: {reason}; repair it, or write one message per line"
    )


def _sniff(file: BinaryIO, max_bytes: int) -> tuple[bool, bool]:
    """Return whether a file may be a document, and whether it must be one, judging by its first two lines."""
    lines = (line for line in numbered_lines(file, max_line_bytes=max_bytes) if line.data is None or line.data.strip())
    first = next(lines, None)
    if first is None or first.data is None:
        return False, False
    value = parse_json(first.data)
    if not isinstance(value, NotJson):
        entries = as_list(value)
        return bool(entries) and all(as_object(entry) is not None for entry in entries or ()), False
    if not first.data.lstrip().startswith((b"[", b"{")) or any(isinstance(one, dict) for one in decode(first)):
        return False, False
    second = next(lines, None)
    is_opening = first.data.strip() in _OPENINGS
    if second is None:
        # A document cannot be recognized by a first line that was cut off.
        return is_opening, is_opening
    is_object = any(isinstance(one, dict) for one in decode(second))
    return True, is_opening or (not is_object and first.data.rstrip().endswith((b",", b"[", b"{")))


def _entries(text: str) -> Iterator[Value]:
    """Yield the values of a document; for an array, its elements one by one."""
    at = len(text) - len(text.lstrip(_WHITE_SPACE))
    if text[at : at + 1] != "[":
        yield from values_in(text, at)
        return
    value, stop = parse_at(text, at)
    rest = text[stop:].strip(_WHITE_SPACE)
    if isinstance(value, NotJson) or rest:
        problem = value if isinstance(value, NotJson) else NotJson("there is more after its end", stop)
        yield Value(at, stop, problem)
        return
    at += 1
    for _ in as_list(value) or ():
        at = _next_entry(text, at)
        entry, stop = parse_at(text, at)
        yield Value(at, stop, entry)
        at = stop


def _next_entry(text: str, at: int) -> int:
    while text[at] in _WHITE_SPACE + ",":
        at += 1
    return at


def _lines(text: str, found: list[Value], offset: int) -> Iterator[Line]:
    """Yield each value as a line, with its line number and byte offset."""
    at, number = 0, 1
    for value in found:
        between = text[at : value.start]
        offset += len(between.encode())
        number += between.count("\n")
        inside = text[value.start : value.stop]
        data = inside.encode()
        yield Line(number, data, offset)
        offset += len(data)
        number += inside.count("\n")
        at = value.stop
