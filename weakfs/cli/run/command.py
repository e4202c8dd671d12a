"""`weakfs run`: run a transcript's calls in order, print the results, and save the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, UNMET
from weakfs.cli.options import EXIT_STATUSES, json_option, store_option
from weakfs.cli.output import Output

if TYPE_CHECKING:
    from weakfs.backends.host.snapshot_kinds import SnapshotKind
    from weakfs.processes import SandboxMode


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
    help="Run shell commands: only in a sandbox, in a sandbox if available, or with all your privileges.  "
    "[default: do not run them]",
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
    from weakfs.cli.run.transcript_run import run_transcript
    from weakfs.cli.run.workspace import Job

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
