"""A run of a transcript: its options are checked, its calls performed, and the session saved."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from weakfs import Session
from weakfs.cli.commands.sessions.diff import amounts
from weakfs.cli.errors import INTERRUPTED, Failure, as_failure, usage
from weakfs.cli.formatting import counted, typed
from weakfs.cli.output import Output, progress, warn
from weakfs.cli.performer import PERFORMED, Outcome, Performer
from weakfs.cli.run.report import Reporter, reporter
from weakfs.cli.run.workspace import Job, open_workspace
from weakfs.cli.sessions import SESSION_HEAD, is_saved_session
from weakfs.session import SaveReport
from weakfs.tools import Tool
from weakfs.tools.handlers import ShellOptions, shell_tool
from weakfs.transcripts import OpenTranscript, RecordedClock, open_transcript

STANDARD_INPUT = "-"


def run_transcript(out: Output, job: Job, *, as_json: bool) -> Outcome:
    """Run the job and print its progress; raise `Failure` if it cannot start, or cannot be saved or committed."""
    check_options(job)
    if job.save is not None:
        refuse_to_replace(job.save, job.transcripts)
    with reading(job) as transcript:
        return perform_job(out, job, transcript, as_json=as_json)


def perform_job(out: Output, job: Job, transcript: OpenTranscript, *, as_json: bool) -> Outcome:
    """Run the job on an open transcript."""
    # With --root, the snapshot before the first call has the current time, whatever the time in the recording.
    clock = RecordedClock(transcript.began_at if job.root is None else None)
    session = Session(session_id=job.session_id, clock=clock)
    listener = reporter(out, len(transcript), as_json=as_json)
    outcome = Outcome()
    if not transcript.summary.known_count:
        refuse_unknown(job, transcript, listener)
    workspace = open_workspace(job, session)
    outcome.unread += workspace.begin(listener)
    clock.at = transcript.began_at
    for skipped in transcript.summary.skipped:
        listener.skipped(skipped)
        outcome.unread += 1
    # With --root, the history is needed to restore the directory.
    keeps_history = job.save is not None or job.root is not None or job.overlay is not None
    performer = Performer.over(session, workspace.files, tools_of(job), outcome, clock, keeps_history=keeps_history)
    with as_failure(f"read {named(job)}"):
        performer.prepare(transcript, with_bar=not out.is_terminal)
        workspace.take_baseline()
        performer.perform_all(transcript, listener, with_bar=not out.is_terminal)
    report_commands(job, outcome)
    try:
        found = workspace.end(listener, why_withheld(job, outcome))
    finally:
        # Report what was done even if a later step fails.
        if job.save is not None:
            listener.saved(save(session, job.save, embed=job.embed))
    listener.total(outcome, amounts(found), workspace.undo())
    if outcome.interrupted:
        calls = f"{sum(outcome.statuses.values()):,} of {counted(len(transcript), 'call')}"
        raise Failure(f"interrupted after {calls}", status=INTERRUPTED)
    return outcome


def tools_of(job: Job) -> tuple[Tool, ...]:
    """Return the tools that a transcript may use."""
    return PERFORMED if job.sandbox is None else (*PERFORMED, shell_tool(ShellOptions(sandbox=job.sandbox)))


def report_commands(job: Job, outcome: Outcome) -> None:
    """Report on standard error that commands were not run, and how to run them."""
    number = outcome.commands
    if number and job.sandbox is None:
        warn(f"did not run {counted(number, 'shell command')}; to run them in a sandbox: --sandbox required")


def why_withheld(job: Job, outcome: Outcome) -> str | None:
    """Return why nothing is to be committed, or `None`."""
    if outcome.interrupted:
        return "the run was interrupted"
    failed = outcome.unexpected + outcome.broken
    if job.strict and failed:
        return f"{counted(failed, 'call')} failed"
    if job.strict and outcome.differing:
        return f"{counted(outcome.differing, 'call')} did not do what was recorded"
    return None


def check_options(job: Job) -> None:
    """Raise `Failure` for options that contradict each other."""
    places = [f"--{name}" for name in ("mount", "root", "overlay") if getattr(job, name) is not None]
    if len(places) > 1:
        raise usage(f"cannot use {' and '.join(places)} together: a run works in one place; choose one")
    on_disk = job.root if job.root is not None else job.overlay
    for option, is_given, needed, is_there in (
        ("--exclude", job.exclude, "--mount", job.mount is not None),
        ("--commit", job.commit, "--overlay", job.overlay is not None),
        ("--embed", job.embed, "--save", job.save is not None),
        ("--store", job.store is not None, "--root or --overlay", on_disk is not None),
        ("--snapshots", job.snapshots != "tree", "--root or --overlay", on_disk is not None),
    ):
        if is_given and not is_there:
            raise usage(f"cannot use {option} without {needed}; add that, or omit {option}")
    if on_disk is not None and job.save is not None:
        inside, folder = os.path.realpath(on_disk), os.path.dirname(os.path.realpath(job.save))
        if os.path.commonpath([inside, folder]) == inside:
            raise usage(f"cannot save to {job.save!r}: it is inside {on_disk!r}, where the calls work; name another")


def refuse_to_replace(target: str, transcripts: tuple[str, ...]) -> None:
    """Raise `Failure`, before any work is done, if saving would replace something that is not a session."""
    path = Path(target)
    with as_failure(f"save to {target!r}"):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.parent.is_dir():
            raise Failure(f"cannot save to {target!r}: there is no directory {str(path.parent)!r}; create it first")
        if not path.exists():
            return
        for transcript in transcripts:
            if transcript != STANDARD_INPUT and Path(transcript).exists() and path.samefile(transcript):
                raise usage(f"cannot save to {target!r}: that is the transcript; name another file")
        with path.open("rb") as stream:
            head = stream.read(len(SESSION_HEAD))
    # Only a saved session is replaced without asking.
    if head and head != SESSION_HEAD:
        raise Failure(f"cannot save to {target!r}: it exists and is not a saved session; name another, or remove it")


@contextmanager
def reading(job: Job) -> Generator[OpenTranscript, None, None]:
    """Open the transcripts; `-` is standard input."""
    paths = ["/dev/stdin" if one == STANDARD_INPUT else one for one in job.transcripts]
    with ExitStack() as stack:
        with as_failure(f"read {named(job)}"):
            opened = stack.enter_context(open_transcript(*paths))
        yield opened


def named(job: Job) -> str:
    """Return what a message calls the transcripts."""
    only, *others = job.transcripts
    if others:
        return f"{len(job.transcripts)} transcripts"
    return "the transcript on standard input" if only == STANDARD_INPUT else f"the transcript {only!r}"


def refuse_unknown(job: Job, transcript: OpenTranscript, listener: Reporter) -> None:
    """Raise `Failure` if no line of the transcript has a known format: there is nothing to run."""
    lines = transcript.summary.line_count
    if not lines:
        return
    if len(job.transcripts) == 1 and os.path.isfile(job.transcripts[0]) and is_saved_session(job.transcripts[0]):
        file = job.transcripts[0]
        raise Failure(
            f"cannot run {file!r}: it is a saved session, whose calls were made already; see: "
            f"{typed('weakfs', 'log', file)}, or {typed('weakfs', 'replay', file)}"
        )
    found = transcript.summary.skipped
    if len(found) == 1 and len(job.transcripts) == 1:
        raise Failure(f"cannot read {named(job)}: line {found[0].line}: {found[0].reason}")
    for skipped in found:
        listener.skipped(skipped)
    raise Failure(
        f"cannot read {named(job)}: {counted(lines, 'line')} read, none in a known format; give "
        f"one call per line, OpenAI or Anthropic messages, or a session file of Claude Code, Codex or Copilot CLI"
    )


def save(session: Session, target: str, *, embed: bool) -> SaveReport:
    """Save the session, with a progress bar if that takes long."""
    with as_failure(f"save to {target!r}"), progress(f"saving {target}"):
        return session.save(target, embed=embed)
