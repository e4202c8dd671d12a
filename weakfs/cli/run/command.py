"""`weakfs run`: run a transcript's calls in order, print the results, and save the session."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click

from weakfs import Session
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.cli.commands.sessions.diff import amounts
from weakfs.cli.errors import DONE, INTERRUPTED, UNMET, Failure, as_failure, usage
from weakfs.cli.formatting import counted, typed
from weakfs.cli.options import EXIT_STATUSES, json_option, store_option
from weakfs.cli.output import Output, progress, warn
from weakfs.cli.performer import PERFORMED, Outcome, Performer
from weakfs.cli.run.report import Reporter, reporter
from weakfs.cli.run.workspace import Job, open_workspace
from weakfs.cli.sessions import SESSION_HEAD, is_saved_session
from weakfs.processes import SandboxMode
from weakfs.session import SaveReport
from weakfs.tools import Tool
from weakfs.tools.handlers import ShellOptions, shell_tool
from weakfs.transcripts import OpenTranscript, RecordedClock, open_transcript

STANDARD_INPUT = "-"


@click.command("run", epilog=EXIT_STATUSES)
@click.argument("transcripts", metavar="TRANSCRIPT...", nargs=-1, required=True, type=click.Path())
@click.option("--mount", metavar="DIR", type=click.Path(), help="Work in memory, on a copy of this directory.")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Exclude from the mount; may be repeated.")
@click.option("--root", metavar="DIR", type=click.Path(), help="Work in this directory, after taking a snapshot of it.")
@click.option(
    "--overlay", metavar="DIR", type=click.Path(), help="Work in a layer over this directory, which stays unchanged."
)
@click.option("--commit", is_flag=True, help="At the end, write the changes to --overlay DIR.")
@click.option(
    "--snapshots",
    type=click.Choice(["tree", "git", "tar"]),
    default="tree",
    help="How snapshots of DIR are stored.  [default: tree]",
)
@store_option
@click.option(
    "--sandbox",
    type=click.Choice(["required", "auto", "off"]),
    help="Run shell commands: only in a sandbox, in a sandbox if available, or with all your rights.  [default: off]",
)
@click.option("--save", metavar="FILE", type=click.Path(), help="Save the session to this file.")
@click.option("--embed", is_flag=True, help="Save everything in that one file, without sidecar files.")
@click.option("--session-id", metavar="ID", help="The id of the session.  [default: a random id]")
@click.option("--strict", is_flag=True, help="If a call fails or differs, commit nothing and exit with 3.")
@json_option
def run_command(
    transcripts: tuple[str, ...],
    mount: str | None,
    exclude: tuple[str, ...],
    root: str | None,
    overlay: str | None,
    commit: bool,
    snapshots: SnapshotKind,
    store: str | None,
    sandbox: SandboxMode | None,
    save: str | None,
    embed: bool,
    session_id: str | None,
    strict: bool,
    as_json: bool,
) -> int:
    """Run recorded tool calls, and print what each one did.

    TRANSCRIPT has one JSON object per line: a call, an OpenAI or Anthropic message, or a line of a session file of
    Claude Code, Codex or Copilot CLI. It may also be one JSON document, such as an array of messages. Use - for
    standard input. A call that fails is rolled back, and the run continues with the next one. Lines that cannot be
    read are reported by number. Records and calls have the times of the recording, if it has any.

    Each call of a session file is run by the equivalent weakfs tool, on the files as they were, below the session's
    directory. The output says whether the result and the files after the call agree with the recording, and how this
    was checked: exactly, against text rebuilt from other calls, or not at all. Text that a shell command or an unknown
    tool may have changed is not checked. Files as the recording first shows them are the baseline of "weakfs diff". A
    call that is not run, and that failed in the recording, is recorded as failed with the recorded text. With --strict,
    the exit status is 3 if a call differs; a call that fails both in the recording and here agrees. If a session
    continues in another file, give the files in order: repeated lines count once.

    The session's directory is /. Another working tree of the session's repository, such as /x/repo-feature next to
    /x/repo, becomes /.worktrees/repo-feature; one inside the session's directory keeps its place there. All other paths
    are outside, and calls on them are not run.

    The calls work in memory, unless --root or --overlay names a host directory. With --root, a snapshot of it is taken
    first, and the last line of the output is the command that restores it. With --overlay, the names of the changed
    files are printed at the end, and --commit writes the changes: all of them, or none if another process changed a
    file that was read. A snapshot is taken before the commit.

    With --json, each line is an object whose "type" is mount, root, overlay, snapshot, skipped, call, change,
    committed, not_committed, saved or total. A call of a session file has "agreement": agreed, differs,
    ours_succeeded (the recorded call failed), not_checked, outside or no_counterpart; "checked": exactly, rebuilt or
    not_at_all; and "recorded_error", the text of a failure in the recording.
    """
    job = Job(
        transcripts=transcripts,
        mount=mount,
        exclude=exclude,
        root=root,
        overlay=overlay,
        commit=commit,
        snapshots=snapshots,
        store=store,
        sandbox=sandbox,
        save=save,
        embed=embed,
        session_id=session_id,
        strict=strict,
    )
    outcome = run_transcript(Output(finish_unread=True), job, as_json=as_json)
    if outcome.unread or outcome.broken:
        return 1
    return UNMET if strict and (outcome.unexpected or outcome.differing) else DONE


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
