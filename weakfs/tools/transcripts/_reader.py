"""Read a transcript from its first line to its last, and join the answers to their calls.

The file is gone through twice: once for where each call and its answers stand, then call by call, so that of a file
of any size only one call is held at a time.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from reprlib import repr as short_repr
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple, cast

import attrs

from ._codex_output import read_output
from ._formats import READERS, sniff
from ._lines import Line, decode, numbered_lines
from ._records import Answer, Found, Message, Skipped, Source, Transcript, TranscriptCall
from ._whereabouts import PROGRAMS, Whereabouts

# A tool writes at most 32 MiB by default; JSON escapes and a copy of the old text make that much longer.
MAX_LINE_BYTES = 256 << 20


def read_transcript(path: str | PathLike[str], *, max_line_bytes: int = MAX_LINE_BYTES) -> Transcript:
    """Read the calls of a JSONL transcript.

    Lines of other types are passed over silently. A line that is cut off, not JSON or longer than
    `max_line_bytes`, and any field of the wrong type, is reported in `Transcript.skipped` or in the call's
    `problem`; whatever a file holds, the only exceptions are those of opening and reading it (`OSError`).

    Held are the calls, their answers and the notices, never the other lines, which are most of a real transcript. To
    hold one call at a time, see `open_transcript`.
    """
    with open_transcript(path, max_line_bytes=max_line_bytes) as opened:
        return attrs.evolve(opened.summary, calls=tuple(opened))


@contextmanager
def open_transcript(
    path: str | PathLike[str], *, max_line_bytes: int = MAX_LINE_BYTES
) -> Generator[OpenTranscript, None, None]:
    """Open a transcript to go through its calls one by one; a pipe is first written to a temporary file."""
    with Path(path).open("rb") as file:
        if file.seekable():
            yield OpenTranscript(file, max_line_bytes)
            return
        with TemporaryFile() as copy:
            shutil.copyfileobj(file, copy)
            copy.seek(0)
            yield OpenTranscript(cast(BinaryIO, copy), max_line_bytes)


class _At(NamedTuple):
    """Where something stands: in which line, and as which of the things in it."""

    line: int
    offset: int
    size: int
    nth: int


@attrs.define
class _Row:
    """Where a call and what tells of it stand, and where among the others it belongs."""

    order: int
    call: _At
    format: str
    source: Source | None
    answers: tuple[_At, ...] = ()


class OpenTranscript:
    """A transcript that is open: iterating gives its calls, `summary` all else that is to be said of it.

    Calls come in the order in which they were made, those of a program's own files in the order in which they were
    answered: of calls that run side by side that is the order in which they took effect.
    """

    def __init__(self, file: BinaryIO, max_line_bytes: int) -> None:
        self._file = file
        self._rows, self.summary = _index(file, max_line_bytes)
        self._last: tuple[int, list[Found]] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[TranscriptCall]:
        for row in self._rows:
            call = self._found(row.call)
            if isinstance(call, TranscriptCall):
                yield self._joined(attrs.evolve(call, source=row.source), row)

    def _joined(self, call: TranscriptCall, row: _Row) -> TranscriptCall:
        for at in row.answers:
            answer = self._found(at)
            if not isinstance(answer, Answer):
                continue
            if not answer.is_event:
                text, is_error = answer.text, answer.is_error
                if row.format == "codex" and is_error is None and text:
                    # The oldest files have answers that look like OpenAI's own.
                    text, is_error = read_output(text)
                call = attrs.evolve(call, recorded=text, recorded_error=is_error)
            if answer.result is not None:
                call = attrs.evolve(call, result=answer.result)
        return call

    def _found(self, at: _At) -> Found | None:
        if self._last is None or self._last[0] != at.offset:
            self._file.seek(at.offset)
            message = decode(Line(at.line, self._file.read(at.size)))
            # A file that changed meanwhile gives nothing where something was.
            own = sniff(message) if isinstance(message, dict) else None
            found = [] if own is None else list(READERS[own](cast(Message, message), at.line))
            self._last = at.offset, found
        found = self._last[1]
        return found[at.nth] if at.nth < len(found) else None


def _index(file: BinaryIO, max_line_bytes: int) -> tuple[list[_Row], Transcript]:
    calls, where = _Calls(), Whereabouts()
    skipped: list[Skipped] = []
    formats: set[str] = set()
    line_count = known = repeated = 0
    for line in numbered_lines(file, max_line_bytes=max_line_bytes):
        line_count = line.number
        message = decode(line)
        if isinstance(message, Skipped):
            skipped.append(message)
            continue
        name = sniff(message) if message is not None else None
        if message is None or name is None:
            known += message is None
            continue
        known += 1
        if where.repeats(name, message):
            repeated += 1
            continue
        where.follow(name, message)
        for nth, found in enumerate(READERS[name](message, line.number)):
            at = _At(line.number, line.offset, len(line.data or b""), nth)
            if isinstance(found, TranscriptCall):
                calls.add(found, _Row(line.number, at, name, where.source(name)))
                formats.add(name)
            elif isinstance(found, Skipped):
                skipped.append(found)
            elif not calls.join(found, at):
                reason = f"an answer to {short_repr(found.call_id)}: no call above with that id waits for one"
                skipped.append(Skipped(line.number, reason))
    rows = sorted(calls.made, key=lambda row: row.order)
    return rows, Transcript((), tuple(skipped), tuple(sorted(formats)), line_count, known, repeated)


class _Calls:
    """The calls so far, and by id those that wait for their answer, oldest first."""

    def __init__(self) -> None:
        self.made: list[_Row] = []
        self._waiting: dict[str, deque[_Row]] = {}
        self._newest: dict[str, _Row] = {}

    def add(self, call: TranscriptCall, row: _Row) -> None:
        self.made.append(row)
        if call.call_id is not None:
            self._waiting.setdefault(call.call_id, deque()).append(row)
            if row.source is not None:
                self._newest[call.call_id] = row

    def join(self, answer: Answer, at: _At) -> bool:
        """Give an answer to the oldest call with its id that has none; False if there is no such call."""
        if answer.is_event:
            # Programs tell of more than is recorded, so that an event without its call is nothing strange.
            row = self._newest.get(answer.call_id)
            if row is not None:
                row.answers += (at,)
            return True
        rows = self._waiting.get(answer.call_id)
        if not rows:
            return False
        row = rows.popleft()
        if not rows:
            del self._waiting[answer.call_id]
        row.answers += (at,)
        if row.format in PROGRAMS:
            row.order = at.line
        return True
