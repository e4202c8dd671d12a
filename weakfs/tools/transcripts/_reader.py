"""Read a transcript from its first line to its last, and join the answers to their calls."""

from __future__ import annotations

from collections import deque
from os import PathLike
from pathlib import Path
from reprlib import repr as short_repr
from typing import BinaryIO

import attrs

from ._formats import READERS, sniff
from ._lines import decode, numbered_lines
from ._records import Answer, Skipped, Transcript, TranscriptCall

# A tool writes at most 32 MiB by default; JSON escapes and a copy of the old text make that much longer.
MAX_LINE_BYTES = 256 << 20


def read_transcript(path: str | PathLike[str], *, max_line_bytes: int = MAX_LINE_BYTES) -> Transcript:
    """Read the calls of a JSONL transcript.

    Lines of other types are passed over silently. A line that is cut off, not JSON or longer than
    `max_line_bytes`, and any field of the wrong type, is reported in `Transcript.skipped` or in the call's
    `problem`; whatever a file holds, the only exceptions are those of opening and reading it (`OSError`).

    The file is read once and line by line. Held are the calls, their answers and the notices, never the other
    lines, which are most of a real transcript.
    """
    with Path(path).open("rb") as file:
        return _read(file, max_line_bytes)


def _read(file: BinaryIO, max_line_bytes: int) -> Transcript:
    calls = _Calls()
    skipped: list[Skipped] = []
    formats: set[str] = set()
    line_count = 0
    for line in numbered_lines(file, max_line_bytes=max_line_bytes):
        line_count = line.number
        message = decode(line)
        if isinstance(message, Skipped):
            skipped.append(message)
            continue
        name = sniff(message) if message is not None else None
        if message is None or name is None:
            continue
        for found in READERS[name](message, line.number):
            if isinstance(found, TranscriptCall):
                calls.add(found)
                formats.add(name)
            elif isinstance(found, Skipped):
                skipped.append(found)
            elif not calls.join(found):
                reason = f"an answer to {short_repr(found.call_id)}: no call above with that id waits for one"
                skipped.append(Skipped(line.number, reason))
    return Transcript(tuple(calls.made), tuple(skipped), tuple(sorted(formats)), line_count)


class _Calls:
    """The calls so far, and by id those that wait for their answer, oldest first."""

    def __init__(self) -> None:
        self.made: list[TranscriptCall] = []
        self._waiting: dict[str, deque[int]] = {}

    def add(self, call: TranscriptCall) -> None:
        if call.call_id is not None:
            self._waiting.setdefault(call.call_id, deque()).append(len(self.made))
        self.made.append(call)

    def join(self, answer: Answer) -> bool:
        """Give an answer to the oldest call with its id that has none; False if there is no such call."""
        places = self._waiting.get(answer.call_id)
        if not places:
            return False
        place = places.popleft()
        if not places:
            del self._waiting[answer.call_id]
        self.made[place] = attrs.evolve(self.made[place], recorded=answer.text, recorded_error=answer.is_error)
        return True
