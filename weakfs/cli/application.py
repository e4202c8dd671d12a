"""The `weakfs` command as click sees it: names, options, help, and which exit status an error has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

import weakfs
from weakfs.cli.commands.host_commands import COMMANDS
from weakfs.cli.errors import DONE, INTERRUPTED, UNMET, USAGE, Failure
from weakfs.cli.options import EXIT_STATUSES, expansion_option, json_option, registry_option, store_option
from weakfs.cli.output import Output, ReaderGone, complain
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
    help="The external filesystem that is meant.  [default: the only one, where the session has no files of its own]",
)


@click.group(invoke_without_command=True, context_settings=CONTEXT, epilog=EXIT_STATUSES)
@click.version_option(weakfs.__version__, prog_name="weakfs")
@click.pass_context
def command(context: click.Context) -> None:
    """Perform recorded tool calls, look into saved sessions, keep snapshots of directories."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit(USAGE)


@command.command("run", epilog=EXIT_STATUSES)
@click.argument("transcripts", metavar="TRANSCRIPT...", nargs=-1, required=True, type=click.Path())
@click.option("--mount", metavar="DIR", type=click.Path(), help="Work in memory, with this directory copied in.")
@click.option("--exclude", metavar="GLOB", multiple=True, help="Leave out of the mount; may be repeated.")
@click.option("--root", metavar="DIR", type=click.Path(), help="Work in this directory, after a snapshot of it.")
@click.option("--overlay", metavar="DIR", type=click.Path(), help="Work over this directory, which stays as it is.")
@click.option("--commit", is_flag=True, help="In the end write what changed down to --overlay DIR.")
@click.option(
    "--snapshots",
    type=click.Choice(["tree", "git", "tar"]),
    default="tree",
    help="How snapshots of DIR are kept.  [default: tree]",
)
@store_option
@click.option(
    "--sandbox",
    type=click.Choice(["required", "auto", "off"]),
    help="Run shell commands too: in a sandbox, in one if there is one, with all your rights.  [default: not at all]",
)
@click.option("--save", metavar="FILE", type=click.Path(), help="Save the session there.")
@click.option("--embed", is_flag=True, help="Save all in that one file, nothing beside it.")
@click.option("--session-id", metavar="ID", help="What the session is called.  [default: a random id]")
@click.option("--strict", is_flag=True, help="Exit with 3 if a call failed or differs, and commit nothing then.")
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
    """Perform the tool calls of TRANSCRIPT and print what each did.

    TRANSCRIPT has one JSON object a line: a call, an OpenAI or Anthropic message, or a line of a session file of
    Claude Code, Codex or Copilot CLI. It may also be one JSON document, such as an array of messages. - is standard
    input. A call that fails is rolled back and the next one is made. Lines that cannot be read are reported by number.
    Records and calls have the times of the recording, where it has any.

    Each call of a session file is made by our tool that does the same, in the files as they were, below the session's
    directory. The output says whether our answer and the files afterwards agree with what is recorded, and how that
    is known: exactly, from text that was rebuilt from other calls, or not at all. Text that a shell command or an
    unknown tool may have changed is not checked. Files as the recording first shows them are the baseline of "weakfs
    diff". A call that is not made and failed there is on record as failed, with the recorded text. With --strict the
    exit status is 3 if one differs; calls that failed there and here are as they should be. Of a session that goes on
    in a later file, give the files in their order: lines that are repeated count once.

    The session's directory is /. Another working tree of the repository that the session used, such as
    /x/repo-feature beside /x/repo, is /.worktrees/repo-feature; one that lies in the session's directory stays where
    it lies there. Other paths are outside, and calls about them are not made.

    The calls work in memory, unless --root or --overlay names a directory of the host. With --root a snapshot of it
    is taken first, and the last line says how to go back to that. With --overlay the names of what would change are
    told at the end, and --commit changes it: all or nothing, and nothing where somebody else changed a file that was
    read. Its snapshot is taken before that.

    With --json the lines are objects of "type" mount, root, overlay, snapshot, skipped, call, change, committed,
    not_committed, saved and total. A call of a session file has "agreement": agreed, differs, ours_succeeded (where
    theirs failed), not_checked, outside or no_counterpart; "checked": exactly, rebuilt or not_at_all; and
    "recorded_error" with the text of a failure in the recording.
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
@click.option("--records", "by_record", is_flag=True, help="One row for each record instead.")
@click.option("--cause", metavar="ID", help="Only what has this cause, such as the call of this id.")
@click.option("--path", metavar="PATH", help="Only what touches this path or something below it.")
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=0), help="Only the newest N.")
@click.option("--filesystem", metavar="ID", help="Only what happened in this external filesystem.")
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

    Each row has the number of the call, when it began (month, day and time in UTC), its tool, its path, the lines that
    it added and removed, and how it ended. What "weakfs run" prints has the same numbers, and "weakfs diff FILE --call
    NUMBER" shows what one call changed. Changes that no call made have rows without a number: rollbacks, what the
    program wrote itself, and, unless --cause, --path or --filesystem is given, snapshots. In the last column stands
    their cause.

    With --records each row has a record: its number, its time, what happened, its cause and the path.

    With --json the lines are objects of "type" call, record and snapshot.
    """
    from weakfs.cli.commands.log import show_calls
    from weakfs.cli.commands.log_records import Selection, show_records
    from weakfs.cli.errors import telling
    from weakfs.cli.sessions import chosen, load
    from weakfs.filesystem import normalize

    with telling(f"use the path {path!r}"):
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
@click.option("-R", "--recursive", is_flag=True, help="Everything below PATH.")
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

    Each line has the permission bits, the size in bytes, the time of the last change in UTC and the name.
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

    Of a directory, --at names a snapshot: so one file is had back without a restore.
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
@click.option("--call", metavar="ID", help="What this call changed: its id, or its number as weakfs log shows it.")
@click.option("--at", metavar="SEQ|TAG", help="From this moment. [default: before the first change, after the mounts]")
@click.option("--to", metavar="SEQ|TAG", help="To this moment. [default: the end]")
@click.option("--names", "only_names", is_flag=True, help="Only the names: A added, D removed, M changed, R moved.")
@click.option("--exit-code", is_flag=True, help="Exit with 3 if something differs.")
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

    First the names, then the differences of the contents as git writes them: "git apply" takes the output. FILE
    may also be a directory: --at and --to name snapshots of it then, and what is left out is the newest one, and the
    directory as it is now.
    """
    from weakfs.cli.call_changes import trees_of_call
    from weakfs.cli.commands.diff import differences, show_as_json, show_names, show_texts
    from weakfs.cli.directories import is_directory, trees
    from weakfs.cli.errors import telling
    from weakfs.cli.sessions import chosen, first_moment, load, moment_of, tree_of
    from weakfs.filesystem import normalize

    with telling(f"use the path {path!r}"):
        path = normalize(path)
    if call is not None and (at is not None or to is not None):
        raise Failure("cannot use --call with --at or --to: a call has its own moments; leave one out", status=USAGE)
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
    """Show how much the session saved in FILE holds: files, records, snapshots, tool calls."""
    from weakfs.cli.commands.stats import show_statistics
    from weakfs.cli.sessions import chosen, load

    session = load(file, registry, max_expansion)
    show_statistics(Output(), session, file, chosen(session, filesystem), as_json=as_json)
    return DONE


@command.command("replay", epilog=EXIT_STATUSES)
@file_argument
@click.option("--verify", is_flag=True, help="Compare with what FILE says, and exit with 3 if something differs.")
@registry_option
@expansion_option
@json_option
def replay_command(file: str, verify: bool, registry: str | None, max_expansion: float | None, as_json: bool) -> int:
    """Rebuild the session saved in FILE from its records alone.

    No tool runs again and no directory is touched, not even where the session worked in one. The digests of the
    files are printed for every snapshot and for the end.

    With --verify every state that FILE holds (at snapshots, rollbacks, merges and the end) is compared with what the
    records give, and every content that lies beside FILE is read. What differs is named. A content that is missing, or
    a record that cannot be applied, is an error. Reducers of your own count only if the registry declares them, with
    Registry.with_slices.

    With --json the lines are objects of "type" snapshot, rollback, merge, end and total.
    """
    from weakfs.cli.commands.replay import show_replay
    from weakfs.cli.sessions import load

    session = load(file, registry, max_expansion)
    is_same = show_replay(Output(), session, file, verify=verify, as_json=as_json)
    return DONE if is_same else UNMET


for one in COMMANDS:
    command.add_command(one)


def run(arguments: Sequence[str] | None) -> int:
    """Run the command and give its exit status; whatever goes wrong is told in one line."""
    words = None if arguments is None else list(arguments)
    try:
        with interruptible():
            status = command.main(args=words, prog_name="weakfs", standalone_mode=False)
            Output().flush()
    except ReaderGone:
        return DONE
    except Failure as failure:
        complain(str(failure))
        return failure.status
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "weakfs"
        message = error.format_message()
        complain(f"{message[:1].lower()}{message[1:].rstrip('.')}; see: {where} --help")
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return INTERRUPTED
    return int(status or DONE)
