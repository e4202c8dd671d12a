"""`weakfs run`: perform a transcript's calls one after another, tell what each did, and save the session."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from attrs import define, field, frozen

from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.backends.mount import mount
from weakfs.cli.comparing import amounts
from weakfs.cli.failures import USAGE, Failure, telling
from weakfs.cli.output import Output, progress
from weakfs.cli.reporting import Reporter, reporter
from weakfs.filesystem import Limits
from weakfs.reducers import MountReport, diff
from weakfs.session import SaveReport, Session
from weakfs.tools import DEFAULT_TOOLS, ToolResult, Toolset
from weakfs.tools.transcripts import Transcript, TranscriptCall, read_transcript

STANDARD_INPUT = "-"
# A transcript is a file from anywhere: performing it changes files, and never runs what somebody wrote in it.
PERFORMED = tuple(tool for tool in DEFAULT_TOOLS if tool.name != "shell")
# What a session file begins with: only such a file is replaced without asking.
SESSION_HEAD = b'{"format":"weakfs-session"'


@frozen
class Job:
    """What is asked for: a transcript, a directory to copy in and what of it to leave out, a file to save to."""

    transcript: str
    mount: str | None = None
    exclude: tuple[str, ...] = ()
    save: str | None = None
    session_id: str | None = None


@define
class Outcome:
    """How it went: calls by status, what could not be read, and calls that ended in a fault of ours."""

    statuses: dict[str, int] = field(factory=dict[str, int])
    failed: int = 0
    unread: int = 0
    broken: int = 0


def run_transcript(out: Output, job: Job, *, as_json: bool) -> Outcome:
    """Do the job and print it as it goes; `Failure` if it cannot be begun or its end cannot be saved."""
    if job.save is not None:
        refuse_to_replace(job.save, job.transcript)
    transcript = read(job.transcript)
    session = Session(session_id=job.session_id)
    files = InMemoryFilesystem(session, limits=Limits.tools())
    told = reporter(out, len(transcript.calls), as_json=as_json)
    outcome = Outcome()
    if job.mount is not None:
        report = copy_in(session, job.mount, job.exclude, files.limits)
        told.mounted(report)
        outcome.unread += len(report.skipped)
    for skipped in transcript.skipped:
        told.skipped(skipped)
        outcome.unread += 1
    before = files.tree()
    perform_all(transcript, Toolset(session, files, tools=PERFORMED), told, outcome, with_bar=not out.is_terminal)
    if job.save is not None:
        told.saved(save(session, job.save))
    told.total(outcome.statuses, outcome.failed, outcome.unread, amounts(diff(before, files.tree())))
    return outcome


def refuse_to_replace(target: str, transcript: str) -> None:
    """Raise `Failure` where saving would replace something that is no session, before any work is done."""
    path = Path(target)
    with telling(f"save to {target!r}"):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.parent.is_dir():
            raise Failure(f"cannot save to {target!r}: there is no directory {str(path.parent)!r}; make it first")
        if not path.exists():
            return
        if transcript != STANDARD_INPUT and Path(transcript).exists() and path.samefile(transcript):
            raise Failure(f"cannot save to {target!r}: that is the transcript; name another file", status=USAGE)
        with path.open("rb") as stream:
            head = stream.read(len(SESSION_HEAD))
    if head and head != SESSION_HEAD:
        raise Failure(f"cannot save to {target!r}: the file there is no saved session; name another, or remove it")


def read(transcript: str) -> Transcript:
    """Read the transcript; `-` is standard input."""
    if transcript == STANDARD_INPUT:
        with telling("read the transcript on standard input"):
            return read_transcript("/dev/stdin")
    with telling(f"read the transcript {transcript!r}"):
        return read_transcript(transcript)


def copy_in(session: Session, directory: str, exclude: tuple[str, ...], limits: Limits) -> MountReport:
    """Mount a host directory as the root."""
    with telling(f"mount {directory!r}"), progress(f"mounting {directory}") as advance:
        report = mount(session, HostMount(directory, exclude=exclude), limits, on_file=lambda _path, _size: advance())
    # A new session holds no mount, so that this one was made.
    assert report is not None
    return report


def perform_all(transcript: Transcript, toolset: Toolset, told: Reporter, outcome: Outcome, *, with_bar: bool) -> None:
    """Make every call in turn. One that ends in a fault of a program is told, counted, and the next one made."""
    with progress("performing calls", total=len(transcript.calls), wanted=with_bar) as advance:
        for number, call in enumerate(transcript.calls, 1):
            try:
                result = perform(toolset, call)
            except Exception as error:
                told.broke(number, call, error)
                outcome.broken += 1
                outcome.statuses["broken"] = outcome.broken
            else:
                told.called(number, call, result)
                outcome.failed += not result.success
                outcome.statuses[result.status] = outcome.statuses.get(result.status, 0) + 1
            advance()


def perform(toolset: Toolset, call: TranscriptCall) -> ToolResult[object]:
    """Make one call. One whose arguments could not be read has none, which the toolset refuses and records."""
    return toolset.call(call.tool, cast("Mapping[str, object]", call.arguments), call_id=call.call_id)


def save(session: Session, target: str) -> SaveReport:
    """Save the session, with a sign of life where that takes long."""
    with telling(f"save to {target!r}"), progress(f"saving {target}"):
        return session.save(target)
