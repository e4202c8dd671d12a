"""The click application of the `weakfs` command: names, options, help texts and exit statuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

import weakfs
from weakfs.cli.commands.containers import containers_command
from weakfs.cli.commands.export_git import export_git_command
from weakfs.cli.commands.host_commands import COMMANDS
from weakfs.cli.commands.location_commands import LOCATION_COMMANDS
from weakfs.cli.commands.sql import sql_command
from weakfs.cli.commands.undo_commands import UNDO_COMMANDS
from weakfs.cli.errors import DONE, INTERRUPTED, UNMET, USAGE, Failure
from weakfs.cli.options import EXIT_STATUSES, expansion_option, json_option, registry_option, store_option
from weakfs.cli.output import Output, ReaderGone, warn
from weakfs.cli.signals import interruptible

if TYPE_CHECKING:
    from weakfs.backends.host.snapshot_kinds import SnapshotKind
    from weakfs.processes import SandboxMode

CONTEXT = {"help_option_names": ["-h", "--help"]}

AT = "A record number, or the tag or id of a snapshot. [default: the end]"

file_argument = click.argument("file", type=click.Path())
filesystem_option = click.option(
    "--filesystem",
    metavar="ID",
    help="The external filesystem to use.  [default: the only one, if the session has no files of its own]",
)


@click.group(invoke_without_command=True, context_settings=CONTEXT, epilog=EXIT_STATUSES)
@click.version_option(weakfs.__version__, prog_name="weakfs")
@click.pass_context
def command(context: click.Context) -> None:
    """Run recorded tool calls, inspect saved sessions, and take and restore snapshots of directories."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(USAGE)


@command.command("run", epilog=EXIT_STATUSES)
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
    help="Run shell commands too: in a sandbox, in one if available, or with all your rights.  [default: off]",
)
@click.option("--save", metavar="FILE", type=click.Path(), help="Save the session to this file.")
@click.option("--embed", is_flag=True, help="Save everything in that one file, without sidecar files.")
@click.option("--session-id", metavar="ID", help="The id of the session.  [default: a random id]")
@click.option("--strict", is_flag=True, help="If a call failed or differs, commit nothing and exit with 3.")
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
    """Run the tool calls of TRANSCRIPT and print what each one did.

    TRANSCRIPT has one JSON object per line: a call, an OpenAI or Anthropic message, or a line of a session file of
    Claude Code, Codex or Copilot CLI. It may also be one JSON document, such as an array of messages. Use - for
    standard input. A call that fails is rolled back, and the run continues with the next one. Lines that cannot be
    read are reported by number. Records and calls have the times of the recording, if it has any.

    Each call of a session file is run by the equivalent weakfs tool, on the files as they were, below the session's
    directory. The output says whether the result and the files after the call agree with the recording, and how
    this was checked: exactly, against text rebuilt from other calls, or not at all. Text that a shell command or an
    unknown tool may have changed is not checked. Files as the recording first shows them are the baseline of "weakfs
    diff". A call that is not run and that failed in the recording is recorded as failed, with the recorded text. With
    --strict the exit status is 3 if a call differs; a call that fails both in the recording and here agrees. If a
    session continues in a later file, give the files in order: repeated lines count once.

    The session's directory is /. Another working tree of the session's repository, such as /x/repo-feature beside
    /x/repo, is /.worktrees/repo-feature; one inside the session's directory keeps its place there. Other paths are
    outside, and calls on them are not run.

    The calls work in memory, unless --root or --overlay names a directory of the host. With --root, a snapshot of it
    is taken first, and the last line of the output is the command that restores it. With --overlay, the names of the
    changed files are printed at the end, and --commit writes the changes: all or nothing, and nothing if another
    process changed a file that was read. A snapshot is taken before the commit.

    With --json, each line is an object whose "type" is mount, root, overlay, snapshot, skipped, call, change,
    committed, not_committed, saved or total. A call of a session file has "agreement": agreed, differs,
    ours_succeeded (the recorded call failed), not_checked, outside or no_counterpart; "checked": exactly, rebuilt or
    not_at_all; and "recorded_error", the text of a failure in the recording.
    """
    from weakfs.cli.run.command import run_transcript
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


@command.command("log")
@file_argument
@click.option("--records", "by_record", is_flag=True, help="Show one row for each record instead.")
@click.option("--cause", metavar="ID", help="Only changes with this cause, such as the id of a call.")
@click.option("--path", metavar="PATH", help="Only changes at or below this path.")
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=0), help="Only the newest N.")
@click.option("--filesystem", metavar="ID", help="Only changes in this external filesystem.")
@registry_option
@expansion_option
@json_option
def log_command(
    file: str,
    by_record: bool,
    cause: str | None,
    path: str | None,
    limit: int | None,
    filesystem: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Show the tool calls of the session saved in FILE, oldest first.

    Each row shows the number of the call, when it began (month, day and time in UTC), its tool, its path, the number
    of lines added and removed, and its status. The output of "weakfs run" has the same numbers, and "weakfs diff FILE
    --call NUMBER" shows what a call changed. Changes that no call made have rows without a number: rollbacks, writes
    by the program itself, and, unless --cause, --path or --filesystem is given, snapshots. The last column shows
    their cause.

    With --records, each row is a record: its number, its time, its event, its cause and its path.

    With --json, each line is an object whose "type" is call, record or snapshot.
    """
    from weakfs.cli.commands.log import show_calls
    from weakfs.cli.commands.log_records import Selection, show_records
    from weakfs.cli.errors import as_failure
    from weakfs.cli.sessions import chosen, load
    from weakfs.filesystem import normalize

    with as_failure(f"use the path {path!r}"):
        wanted = Selection(cause, None if path is None else normalize(path), limit, filesystem)
    session = load(file, registry, max_expansion)
    if filesystem is not None:
        chosen(session, filesystem)
    show = show_records if by_record else show_calls
    show(Output(), session, wanted, as_json=as_json)
    return DONE


@command.command("ls")
@file_argument
@click.argument("path", default="/")
@click.option("--at", metavar="SEQ|TAG", help=AT)
@click.option("-R", "--recursive", is_flag=True, help="List everything below PATH.")
@filesystem_option
@store_option
@registry_option
@expansion_option
@json_option
def ls_command(
    file: str,
    path: str,
    at: str | None,
    recursive: bool,
    filesystem: str | None,
    store: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """List PATH (default: the root) in the session saved in FILE, or in a directory.

    Each line shows the permission bits, the size in bytes, the modification time in UTC and the name.
    """
    from weakfs.cli.commands.ls import show_listing
    from weakfs.cli.directories import files_at, is_directory
    from weakfs.cli.sessions import chosen, files_of, load, moment_of

    if is_directory(file, store=store, filesystem=filesystem, registry=registry):
        files = files_at(file, at, store)
    else:
        session = load(file, registry, max_expansion)
        files = files_of(session, moment_of(session, at), chosen(session, filesystem))
    show_listing(Output(), files, path, recursive=recursive, as_json=as_json)
    return DONE


@command.command("cat")
@file_argument
@click.argument("path")
@click.option("--at", metavar="SEQ|TAG", help=AT)
@filesystem_option
@store_option
@registry_option
@expansion_option
@json_option
def cat_command(
    file: str,
    path: str,
    at: str | None,
    filesystem: str | None,
    store: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Print the file PATH of the session saved in FILE, or of a directory, byte for byte.

    For a directory, --at names a snapshot, so that you can get one file back without a restore.
    """
    from weakfs.cli.commands.ls import show_content
    from weakfs.cli.directories import files_at, is_directory
    from weakfs.cli.sessions import chosen, files_of, load, moment_of

    if is_directory(file, store=store, filesystem=filesystem, registry=registry):
        files = files_at(file, at, store)
    else:
        session = load(file, registry, max_expansion)
        files = files_of(session, moment_of(session, at), chosen(session, filesystem))
    show_content(Output(), files, path, as_json=as_json)
    return DONE


@command.command("diff", epilog=EXIT_STATUSES)
@file_argument
@click.argument("path", default="/")
@click.option("--call", metavar="ID", help="What this call changed: its id, or its number in weakfs log.")
@click.option("--at", metavar="SEQ|TAG", help="From this moment. [default: before the first change, after the mounts]")
@click.option("--to", metavar="SEQ|TAG", help="To this moment. [default: the end]")
@click.option("--names", "only_names", is_flag=True, help="Only the names: A added, D deleted, M modified, R renamed.")
@click.option("--exit-code", is_flag=True, help="Exit with 3 if there are differences.")
@filesystem_option
@store_option
@registry_option
@expansion_option
@json_option
def diff_command(
    file: str,
    path: str,
    call: str | None,
    at: str | None,
    to: str | None,
    only_names: bool,
    exit_code: bool,
    filesystem: str | None,
    store: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Show what changed at PATH (default: everywhere) in the session saved in FILE.

    The names come first, then the differences of the contents in the format of "git diff", which "git apply" accepts.
    FILE may also be a directory: --at and --to then name snapshots, and default to the newest snapshot and the
    current contents of the directory.
    """
    from weakfs.cli.calls import trees_of_call
    from weakfs.cli.commands.diff import show_as_json, show_names, show_texts
    from weakfs.cli.directories import is_directory, trees
    from weakfs.cli.errors import as_failure
    from weakfs.cli.sessions import chosen, first_moment, load, moment_of, tree_of
    from weakfs.filesystem import normalize
    from weakfs.history.tree_patch import differences

    with as_failure(f"use the path {path!r}"):
        path = normalize(path)
    if call is not None and (at is not None or to is not None):
        raise Failure("cannot use --call with --at or --to: a call sets both moments itself; omit one", status=USAGE)
    if is_directory(file, store=store, filesystem=filesystem, registry=registry):
        if call is not None:
            raise Failure(f"cannot use --call: {file!r} is a directory and has no calls; name a session", status=USAGE)
        before, after = trees(file, at, to, store)
    else:
        session = load(file, registry, max_expansion)
        if call is not None:
            before, after = trees_of_call(session, call, filesystem)
        else:
            meant = chosen(session, filesystem)
            before = tree_of(session, first_moment(session) if at is None else moment_of(session, at), meant)
            after = tree_of(session, moment_of(session, to), meant)
    found = differences(before, after, path)
    out = Output()
    if as_json:
        show_as_json(out, before, after, found, with_text=not only_names)
    else:
        show_names(out, found)
        if not only_names:
            show_texts(out, before, after, found)
    return UNMET if exit_code and found else DONE


@command.command("stats")
@file_argument
@filesystem_option
@registry_option
@expansion_option
@json_option
def stats_command(
    file: str, filesystem: str | None, registry: str | None, max_expansion: float | None, as_json: bool
) -> int:
    """Show statistics of the session saved in FILE: files, records, snapshots, tool calls."""
    from weakfs.cli.commands.stats import show_statistics
    from weakfs.cli.sessions import chosen, load

    session = load(file, registry, max_expansion)
    show_statistics(Output(), session, file, chosen(session, filesystem), as_json=as_json)
    return DONE


@command.command("replay", epilog=EXIT_STATUSES)
@file_argument
@click.option("--verify", is_flag=True, help="Compare the result with FILE, and exit with 3 if it differs.")
@registry_option
@expansion_option
@json_option
def replay_command(file: str, verify: bool, registry: str | None, max_expansion: float | None, as_json: bool) -> int:
    """Rebuild the session saved in FILE from its records alone.

    No tool runs again and no directory is touched, not even one that the session worked in. The digests of the files
    are printed for every snapshot and for the end.

    With --verify, every state in FILE (at snapshots, rollbacks, merges and the end) is compared with the replayed
    state, and every sidecar blob of FILE is read. All differences are named. A missing blob, or a record that cannot
    be applied, is an error. Reducers of your own take part only if the registry declares them with
    Registry.with_slices.

    With --json, each line is an object whose "type" is snapshot, rollback, merge, end or total.
    """
    from weakfs.cli.commands.replay import show_replay
    from weakfs.cli.sessions import load

    session = load(file, registry, max_expansion)
    is_same = show_replay(Output(), session, file, verify=verify, as_json=as_json)
    return DONE if is_same else UNMET


for one in (*COMMANDS, *LOCATION_COMMANDS, *UNDO_COMMANDS, containers_command, sql_command, export_git_command):
    command.add_command(one)


def run(arguments: Sequence[str] | None) -> int:
    """Run the command and return its exit status; report any error in one line."""
    words = None if arguments is None else list(arguments)
    try:
        with interruptible():
            status = command.main(args=words, prog_name="weakfs", standalone_mode=False)
            Output().flush()
    except ReaderGone:
        return DONE
    except Failure as failure:
        warn(str(failure))
        return failure.status
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "weakfs"
        message = error.format_message()
        warn(f"{message[:1].lower()}{message[1:].rstrip('.')}; see: {where} --help")
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        warn("interrupted")
        return INTERRUPTED
    return int(status or DONE)
