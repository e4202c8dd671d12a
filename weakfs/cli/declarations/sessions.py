"""The commands that read a saved session: names, options and help texts."""

from __future__ import annotations

import click

from weakfs.cli.errors import DONE, UNMET, USAGE, Failure
from weakfs.cli.options import (
    AT,
    EXIT_STATUSES,
    expansion_option,
    filesystem_option,
    json_option,
    registry_option,
    store_option,
)
from weakfs.cli.output import Output

file_argument = click.argument("file", type=click.Path())


@click.command("log")
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
    """Show the tool calls of a session, oldest first.

    Each row shows the number of the call, when it began (month, day and time in UTC), its tool, its path, the number
    of lines added and removed, and its status. The output of "weakfs run" has the same numbers, and "weakfs diff FILE
    --call NUMBER" shows what a call changed. Changes that no call made have rows without a number: rollbacks, writes
    by the program itself, and, unless --cause, --path or --filesystem is given, snapshots. The last column shows
    their cause.

    With --records, each row is a record: its number, its time, its event, its cause and its path.

    With --json, each line is an object whose "type" is call, record or snapshot.
    """
    from weakfs.cli.commands.sessions.log.calls import show_calls
    from weakfs.cli.commands.sessions.log.records import Selection, show_records
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


@click.command("ls")
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
    """List the files of a session, or of a directory.

    PATH is a directory or a file in FILE, by default the root. Each line shows the permission bits, the size in bytes,
    the modification time in UTC and the name.
    """
    from weakfs.cli.commands.sessions.ls import show_listing
    from weakfs.cli.directories import files_at, is_directory
    from weakfs.cli.sessions import chosen, files_of, load, moment_of

    if is_directory(file, store=store, filesystem=filesystem, registry=registry):
        files = files_at(file, at, store)
    else:
        session = load(file, registry, max_expansion)
        files = files_of(session, moment_of(session, at), chosen(session, filesystem))
    show_listing(Output(), files, path, recursive=recursive, as_json=as_json)
    return DONE


@click.command("cat")
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
    """Print a file of a session or of a directory.

    The bytes are printed unchanged. For a directory, --at names a snapshot, so that you can recover one file without a
    restore.
    """
    from weakfs.cli.commands.sessions.ls import show_content
    from weakfs.cli.directories import files_at, is_directory
    from weakfs.cli.sessions import chosen, files_of, load, moment_of

    if is_directory(file, store=store, filesystem=filesystem, registry=registry):
        files = files_at(file, at, store)
    else:
        session = load(file, registry, max_expansion)
        files = files_of(session, moment_of(session, at), chosen(session, filesystem))
    show_content(Output(), files, path, as_json=as_json)
    return DONE


@click.command("diff", epilog=EXIT_STATUSES)
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
    """Show what changed in a session, or in a directory.

    With PATH, show only what changed at or below it. The names come first, then the differences of the contents in the
    format of "git diff", which "git apply" accepts. FILE may also be a directory: --at and --to then name snapshots,
    and default to the newest snapshot and the current contents of the directory.
    """
    from weakfs.cli.calls import trees_of_call
    from weakfs.cli.commands.sessions.diff import show_as_json, show_names, show_texts
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


@click.command("stats")
@file_argument
@filesystem_option
@registry_option
@expansion_option
@json_option
def stats_command(
    file: str, filesystem: str | None, registry: str | None, max_expansion: float | None, as_json: bool
) -> int:
    """Count the files, records, snapshots and calls of a session."""
    from weakfs.cli.commands.sessions.stats import show_statistics
    from weakfs.cli.sessions import chosen, load

    session = load(file, registry, max_expansion)
    show_statistics(Output(), session, file, chosen(session, filesystem), as_json=as_json)
    return DONE


@click.command("replay", epilog=EXIT_STATUSES)
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
    state, and every sidecar blob of FILE is read. All differences are named. A missing blob, or a record that cannot be
    applied, is an error. Your own reducers take part only if the registry declares them with Registry.with_slices.

    With --json, each line is an object whose "type" is snapshot, rollback, merge, end or total.
    """
    from weakfs.cli.commands.sessions.replay import show_replay
    from weakfs.cli.sessions import load

    session = load(file, registry, max_expansion)
    is_same = show_replay(Output(), session, file, verify=verify, as_json=as_json)
    return DONE if is_same else UNMET
