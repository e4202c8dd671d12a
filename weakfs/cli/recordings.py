"""Recorded sessions of other programs, converted to sessions that commands can inspect."""

from __future__ import annotations

from pathlib import Path

from attrs import field

from weakfs import Session
from weakfs.backends import InMemoryFilesystem
from weakfs.class_decorators import define
from weakfs.cli.errors import as_failure
from weakfs.cli.formatting import counted
from weakfs.cli.output import progress, warn
from weakfs.cli.performer import PERFORMED, Outcome, Performer
from weakfs.tools import ToolResult
from weakfs.transcripts import RecordedClock, TranscriptCall, open_transcript
from weakfs.transcripts.comparison import Verdict


def session_of_recording(file: str) -> Session | None:
    """Return the session that a recording describes, or `None` if the file has no call in a known format.

    Its calls are run in memory, as `weakfs run` runs them: on the files as they were, without shell commands. The
    session has the times of the recording, and the name of the file as its id.
    """
    with as_failure(f"read the recorded session {file!r}"), open_transcript(file) as transcript:
        if not len(transcript):
            return None
        clock, outcome, listener = RecordedClock(transcript.began_at), Outcome(), _Broken()
        session = Session(session_id=Path(file).stem, clock=clock)
        files = InMemoryFilesystem(session)
        performer = Performer.over(session, files, PERFORMED, outcome, clock, keeps_history=True)
        with progress(f"performing {file}"):
            performer.prepare(transcript, with_bar=False)
            performer.perform_all(transcript, listener, with_bar=False)
        _report(file, len(transcript.summary.skipped), listener)
    if outcome.interrupted:
        raise KeyboardInterrupt
    return session


def _report(file: str, unread: int, listener: _Broken) -> None:
    if unread:
        warn(f"did not read {counted(unread, 'line')} of {file!r}; to see why: weakfs run")
    if listener.errors:
        warn(f"{counted(len(listener.errors), 'call')} of {file!r} ended in an internal error: {listener.errors[0]}")


@define
class _Broken:
    """A listener that collects only internal errors of `weakfs`."""

    errors: list[str] = field(factory=list[str])

    def called(self, number: int | None, call: TranscriptCall, result: ToolResult[object]) -> None:
        """Ignore a call: the session has it."""

    def compared(self, number: int | None, call: TranscriptCall, verdict: Verdict) -> None:
        """Ignore whether a call agrees with the recording; `weakfs run` reports that."""

    def broke(self, number: int | None, call: TranscriptCall, error: Exception) -> None:
        """Add an internal error."""
        self.errors.append(f"{call.tool}: {type(error).__name__}: {error}")
