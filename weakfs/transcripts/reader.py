"""The transcript reader, which reads a file from the first line to the last, and joins answers to their calls.

The file is read twice: once to find the positions of all calls and answers, then call by call, so that only one call
is held at a time, whatever the size of the file.
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

from weakfs.transcripts.formats.codex import read_output
from weakfs.transcripts.formats.detection import READERS, sniff
from weakfs.transcripts.formats.documents import count_lines, document_entries
from weakfs.transcripts.json_lines import Line, decode, numbered_lines
from weakfs.transcripts.line_context import PROGRAMS, SourceTracker
from weakfs.transcripts.records import Answer, Found, Message, Skipped, Source, Transcript, TranscriptCall
from weakfs.transcripts.timestamps import time_of

# A tool writes at most 32 MiB by default; JSON escapes and a copy of the old text make a line much longer.
MAX_LINE_BYTES = 256 << 20


def read_transcript(path: str | PathLike[str], *, max_line_bytes: int = MAX_LINE_BYTES) -> Transcript:
    """Read the calls of a JSONL transcript.

    Lines of other types are skipped silently. A line that is truncated, not JSON or longer than `max_line_bytes`,
    and any field of the wrong type, is reported in `Transcript.skipped` or in the call's `problem`; whatever a file
    contains, the only exceptions are those of opening and reading it (`OSError`).

    The calls, their answers and the notices are held in memory, but not the other lines, which make up most of a real
    transcript. To hold one call at a time, see `open_transcript`.
    """
    with open_transcript(path, max_line_bytes=max_line_bytes) as opened:
        return attrs.evolve(opened.summary, calls=tuple(opened))


@contextmanager
def open_transcript(
    *paths: str | PathLike[str], max_line_bytes: int = MAX_LINE_BYTES
) -> Generator[OpenTranscript, None, None]:
    """Open a transcript to iterate over its calls; a pipe is first copied to a temporary file.

    Several files are read in order, as sessions that continue in a later file: repeated lines count once.
    """
    files = _Files([Path(path) for path in paths])
    try:
        yield OpenTranscript(files, max_line_bytes)
    finally:
        files.close()


class _Files:
    """The files of a transcript, one of them open at a time, and copies of those that can be read only once."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        self._copies: dict[int, BinaryIO] = {}
        self._last: tuple[int, BinaryIO] | None = None

    def __getitem__(self, number: int) -> BinaryIO:
        if number in self._copies:
            return self._copies[number]
        if self._last is not None and self._last[0] == number:
            return self._last[1]
        self._close_last()
        file = self.paths[number].open("rb")
        if file.seekable():
            self._last = number, file
            return file
        with file:
            copy = self._copies[number] = cast(BinaryIO, TemporaryFile())  # noqa: SIM115  # closed with the others
            shutil.copyfileobj(file, copy)
        copy.seek(0)
        return copy

    def close(self) -> None:
        self._close_last()
        for copy in self._copies.values():
            copy.close()

    def _close_last(self) -> None:
        if self._last is not None:
            self._last[1].close()
            self._last = None


class _At(NamedTuple):
    """A position: the file, the line, and the index among the items on that line."""

    file: int
    line: int
    offset: int
    size: int
    nth: int


@attrs.define
class _Row:
    """The positions of a call and its answers, and its place in the order of calls."""

    order: tuple[int, int, int]
    call: _At
    format: str
    source: Source | None
    made_at: int | None
    answered_at: int | None = None
    answers: tuple[_At, ...] = ()


class OpenTranscript:
    """An open transcript: iterate over it for its calls; `summary` has everything else.

    `began_at` is the first time in the transcript, in nanoseconds since 1970; `None` if there is none.

    Calls are in the order in which they were made. Those of a program's own files are in the order in which they were
    answered, because concurrent calls took effect in that order.
    """

    def __init__(self, files: _Files, max_line_bytes: int) -> None:
        self._files = files
        index = _Index(files)
        self._rows, self.summary = index.read(max_line_bytes)
        self.began_at = index.began_at
        self._where = index.where
        self._last: tuple[tuple[int, int], list[Found]] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[TranscriptCall]:
        for row in self._rows:
            call = self._found(row.call)
            if isinstance(call, TranscriptCall):
                known = attrs.evolve(
                    call,
                    source=None if row.source is None else self._where.completed(row.source),
                    file=_name(self._files, row.call.file),
                    made_at=row.made_at,
                    answered_at=row.answered_at,
                )
                yield self._joined(known, row)

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
        place = at.file, at.offset
        if self._last is None or self._last[0] != place:
            file = self._files[at.file]
            file.seek(at.offset)
            # The file changed in the meantime, and the item is no longer there.
            found = [one for _, _, some in _read_line(Line(at.line, file.read(at.size))) for one in some]
            self._last = place, found
        found = self._last[1]
        return found[at.nth] if at.nth < len(found) else None


def _read_line(line: Line) -> Iterator[tuple[Message | Skipped, str | None, list[Found]]]:
    """Yield each object on a line with the name of its format and the items found in it."""
    for message in decode(line):
        name = None if isinstance(message, Skipped) else sniff(message)
        found = [] if name is None else list(READERS[name](cast(Message, message), line.number))
        yield message, name, found


def _name(files: _Files, number: int) -> str:
    return str(files.paths[number]) if len(files.paths) > 1 else ""


class _Index:
    """The positions of all calls and answers, found in one pass over the files."""

    def __init__(self, files: _Files) -> None:
        self.files = files
        self.calls, self.where = _Calls(), SourceTracker()
        self.skipped: list[Skipped] = []
        self.formats: set[str] = set()
        self.lines = self.known = self.repeated = 0
        self.began_at: int | None = None
        # The time of the last line of the file that has one.
        self._now: int | None = None

    def read(self, max_line_bytes: int) -> tuple[list[_Row], Transcript]:
        for number in range(len(self.files.paths)):
            self.where.begin()
            self._now = None
            lines, known = self.lines, self.known
            entries = document_entries(self.files[number], max_bytes=max_line_bytes)
            if entries is None:
                for line in numbered_lines(self.files[number], max_line_bytes=max_line_bytes):
                    self.lines += 1
                    self._take(number, line)
            else:
                self.lines += count_lines(self.files[number])
                self._take_document(number, entries)
            if self.known == known and self.lines > lines and len(self.files.paths) > 1:
                self._skip(number, Skipped(self.lines - lines, "no known format was found in this file"))
        rows = sorted(self.calls.made, key=lambda row: row.order)
        formats = tuple(sorted(self.formats))
        return rows, Transcript((), tuple(self.skipped), formats, self.lines, self.known, self.repeated)

    def _take_document(self, number: int, entries: list[Line | Skipped]) -> None:
        for entry in entries:
            if isinstance(entry, Skipped):
                self._skip(number, entry)
            else:
                self._take(number, entry)

    def _take(self, number: int, line: Line) -> None:
        nth = is_known = 0
        for message, name, found in _read_line(line):
            if isinstance(message, Skipped):
                self._skip(number, message)
                continue
            self._tell_time(message)
            if name is not None:
                is_known = 1
                at = _At(number, line.number, line.offset, len(line.data or b""), nth)
                self._take_message(message, name, found, at)
            nth += len(found)
        # A blank line does not belong to another format.
        self.known += is_known or (line.data is not None and not line.data.strip())

    def _tell_time(self, message: Message) -> None:
        self._now = time_of(message) or self._now
        if self.began_at is None:
            self.began_at = self._now

    def _take_message(self, message: Message, name: str, found: list[Found], first: _At) -> None:
        if self.where.repeats(name, message):
            self.repeated += 1
            return
        self.where.follow(name, message)
        for nth, one in enumerate(found, first.nth):
            at = first._replace(nth=nth)
            if isinstance(one, TranscriptCall):
                row = _Row((at.file, at.line, at.nth), at, name, self.where.source(name), self._now)
                self.calls.add(one, row)
                self.where.follow_call(name, one)
                self.formats.add(name)
            elif isinstance(one, Skipped):
                self._skip(at.file, one)
            elif not self.calls.join(one, at, self._now) and name not in PROGRAMS:
                # Programs also record answers to other calls, and files may be truncated anywhere.
                reason = f"an answer to {short_repr(one.call_id)}: no call above with that id is waiting for one"
                self._skip(at.file, Skipped(at.line, reason))

    def _skip(self, number: int, skipped: Skipped) -> None:
        self.skipped.append(attrs.evolve(skipped, file=_name(self.files, number)))


class _Calls:
    """The calls so far and, by id, those waiting for an answer, oldest first."""

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

    def join(self, answer: Answer, at: _At, answered_at: int | None) -> bool:
        """Join an answer to the oldest call with its id that has none; return `False` if there is no such call."""
        if answer.is_event:
            # Programs log events for more than the recorded calls, so an event without its call is normal.
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
        row.answered_at = answered_at
        if row.format in PROGRAMS:
            row.order = at.file, at.line, at.nth
        return True
