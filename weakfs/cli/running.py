"""`weakfs run`: perform a transcript's calls one after another, tell what each did, and save the session."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from attrs import define, field

from weakfs.cli.comparing import amounts
from weakfs.cli.directories import usage
from weakfs.cli.failures import INTERRUPTED, USAGE, Failure, telling
from weakfs.cli.output import Output, complain, progress
from weakfs.cli.places import Job, place_of
from weakfs.cli.reporting import Reporter, reporter
from weakfs.cli.wording import counted
from weakfs.session import SaveReport, Session
from weakfs.tools import DEFAULT_TOOLS, Tool, ToolResult, Toolset
from weakfs.tools.handlers import ShellOptions, shell_tool
from weakfs.tools.transcripts import Transcript, TranscriptCall, read_transcript

STANDARD_INPUT = "-"
# A transcript is a file from anywhere: performing it changes files, and runs what somebody wrote in it only if asked.
PERFORMED = tuple(tool for tool in DEFAULT_TOOLS if tool.name != "shell")
# What a session file begins with: only such a file is replaced without asking.
SESSION_HEAD = b'{"format":"weakfs-session"'


@define
class Outcome:
    """How it went: calls by status, what could not be read, and calls that ended in a fault of ours."""

    statuses: dict[str, int] = field(factory=dict[str, int])
    failed: int = 0
    unread: int = 0
    broken: int = 0
    interrupted: bool = False


def run_transcript(out: Output, job: Job, *, as_json: bool) -> Outcome:
    """Do the job and print it as it goes; `Failure` if it cannot be begun or its end cannot be saved or committed."""
    refuse_nonsense(job)
    if job.save is not None:
        refuse_to_replace(job.save, job.transcript)
    transcript = read(job.transcript)
    session = Session(session_id=job.session_id)
    told = reporter(out, len(transcript.calls), as_json=as_json)
    outcome = Outcome()
    place = place_of(job, session)
    outcome.unread += place.begin(told)
    for skipped in transcript.skipped:
        told.skipped(skipped)
        outcome.unread += 1
    toolset = Toolset(session, place.files, tools=tools_of(job))
    perform_all(transcript, toolset, told, outcome, with_bar=not out.is_terminal)
    tell_of_commands(job, transcript)
    try:
        found = place.end(told, why_withheld(job, outcome))
    finally:
        # What was done is to be known whatever becomes of it.
        if job.save is not None:
            told.saved(save(session, job.save, embed=job.embed))
    told.total(outcome.statuses, outcome.failed, outcome.unread, amounts(found), place.undo())
    if outcome.interrupted:
        calls = f"{sum(outcome.statuses.values()):,} of {counted(len(transcript.calls), 'call')}"
        raise Failure(f"interrupted after {calls}", status=INTERRUPTED)
    return outcome


def tools_of(job: Job) -> tuple[Tool, ...]:
    """Give the tools that a transcript may use."""
    return PERFORMED if job.sandbox is None else (*PERFORMED, shell_tool(ShellOptions(sandbox=job.sandbox)))


def tell_of_commands(job: Job, transcript: Transcript) -> None:
    """Tell on standard error that commands were not run, and how they are."""
    number = sum(call.tool == "shell" for call in transcript.calls)
    if number and job.sandbox is None:
        complain(f"did not run {counted(number, 'shell command')}; to have them run in a sandbox: --sandbox required")


def why_withheld(job: Job, outcome: Outcome) -> str | None:
    """Say why nothing is to be committed, if so."""
    if outcome.interrupted:
        return "the run was interrupted"
    failed = outcome.failed + outcome.broken
    return f"{counted(failed, 'call')} failed" if job.strict and failed else None


def refuse_nonsense(job: Job) -> None:
    """Raise `Failure` for options that do not go together."""
    places = [f"--{name}" for name in ("mount", "root", "overlay") if getattr(job, name) is not None]
    if len(places) > 1:
        raise usage(f"cannot use {' and '.join(places)} together: a run has one place; choose one")
    on_disk = job.root if job.root is not None else job.overlay
    for option, is_given, needed, is_there in (
        ("--exclude", job.exclude, "--mount", job.mount is not None),
        ("--commit", job.commit, "--overlay", job.overlay is not None),
        ("--embed", job.embed, "--save", job.save is not None),
        ("--store", job.store is not None, "--root or --overlay", on_disk is not None),
        ("--snapshots", job.snapshots != "tree", "--root or --overlay", on_disk is not None),
    ):
        if is_given and not is_there:
            raise usage(f"cannot use {option} without {needed}; give that too, or leave it out")
    if on_disk is not None and job.save is not None:
        inside, folder = os.path.realpath(on_disk), os.path.dirname(os.path.realpath(job.save))
        if os.path.commonpath([inside, folder]) == inside:
            raise usage(f"cannot save to {job.save!r}: that lies inside {on_disk!r}, which is worked in; name another")


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


def perform_all(transcript: Transcript, toolset: Toolset, told: Reporter, outcome: Outcome, *, with_bar: bool) -> None:
    """Make every call in turn. One that ends in a fault of a program is told, counted, and the next one made."""
    with progress("performing calls", total=len(transcript.calls), wanted=with_bar) as advance:
        for number, call in enumerate(transcript.calls, 1):
            try:
                result = perform(toolset, call)
            except KeyboardInterrupt:
                # The call that was running is rolled back like one that failed.
                outcome.interrupted = True
                return
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


def save(session: Session, target: str, *, embed: bool) -> SaveReport:
    """Save the session, with a sign of life where that takes long."""
    with telling(f"save to {target!r}"), progress(f"saving {target}"):
        return session.save(target, embed=embed)
