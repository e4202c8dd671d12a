"""The click commands about host directories: taking, listing, restoring and dropping snapshots."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, UNMET
from weakfs.cli.options import (
    EXIT_STATUSES,
    directory_argument,
    json_option,
    kind_option,
    registry_option,
    store_option,
)
from weakfs.cli.output import Output

if TYPE_CHECKING:
    from weakfs.backends.host.snapshot_kinds import SnapshotKind

foreign_option = click.option("--foreign", is_flag=True, help="Accept a snapshot of another directory.")


@click.command("snapshot")
@directory_argument
@click.option("--tag", metavar="TEXT", help="A name for the snapshot.")
@kind_option
@store_option
@click.option(
    "--max-bytes",
    metavar="N",
    type=click.IntRange(min=0),
    help="The maximum size of the store in bytes; a snapshot that exceeds it fails.",
)
@json_option
def snapshot_command(
    directory: str, tag: str | None, kind: SnapshotKind, store: str | None, max_bytes: int | None, as_json: bool
) -> int:
    """Take a snapshot of all files in DIR and print its id.

    Snapshots are stored outside DIR; equal contents are stored once. Only files that changed since the last snapshot
    are read.
    """
    from weakfs.cli.commands.host.snapshots import show_taken, take
    from weakfs.cli.directories import open_directory

    files = open_directory(directory, store=store, kind=kind, max_bytes=max_bytes)
    taken = take(files, directory, tag)
    show_taken(Output(finish_unread=True), files, taken, as_json=as_json)
    return DONE


@click.command("snapshots")
@directory_argument
@store_option
@json_option
def snapshots_command(directory: str, store: str | None, as_json: bool) -> int:
    """List the snapshots of DIR, oldest first.

    "frees" is the number of bytes freed by dropping that snapshot alone; "bytes" is the size of its files.
    """
    from weakfs.cli.commands.host.snapshots import show_snapshots
    from weakfs.cli.directories import open_directory

    files = open_directory(directory, store=store, read_only=True)
    show_snapshots(Output(), files, directory, as_json=as_json)
    return DONE


@click.command("restore", epilog=EXIT_STATUSES)
@directory_argument
@click.argument("snapshot", required=False)
@click.option("--latest", is_flag=True, help="Restore the newest snapshot, ignoring those taken by restores.")
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@click.option("--keep/--no-keep", default=True, help="First take a snapshot of the current state.  [default: keep]")
@foreign_option
@click.option("--exit-code", is_flag=True, help="Exit with 3 if there were differences.")
@store_option
@json_option
def restore_command(
    directory: str,
    snapshot: str | None,
    latest: bool,
    dry_run: bool,
    keep: bool,
    foreign: bool,
    exit_code: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Restore DIR to the exact state of a snapshot.

    SNAPSHOT is an id, the beginning of an id, or a tag. Only what differs is changed; the names are printed (A added, D
    deleted, M modified). A snapshot of the previous state is taken first, so that a restore can be undone. For the
    files of a session, use "weakfs restore-files".
    """
    from weakfs.cli.commands.host.restore import restore
    from weakfs.cli.directories import open_directory, usage

    if latest == (snapshot is not None):
        raise usage("cannot restore: no snapshot is named; name one, or give --latest; see: weakfs snapshots DIR")
    files = open_directory(directory, store=store, read_only=dry_run)
    out = Output(finish_unread=True)
    differed = restore(out, files, directory, snapshot, foreign=foreign, dry_run=dry_run, keep=keep, as_json=as_json)
    return UNMET if exit_code and differed else DONE


@click.command("drop")
@directory_argument
@click.argument("snapshots", metavar="[SNAPSHOT]...", nargs=-1)
@click.option(
    "--keep-last", metavar="N", type=click.IntRange(min=0), help="Drop all but the last N and the tagged ones."
)
@click.option("--tagged", is_flag=True, help="With --keep-last, drop tagged ones too.")
@click.option("--dry-run", is_flag=True, help="Only list what would be dropped.")
@foreign_option
@store_option
@json_option
def drop_command(
    directory: str,
    snapshots: tuple[str, ...],
    keep_last: int | None,
    tagged: bool,
    dry_run: bool,
    foreign: bool,
    store: str | None,
    as_json: bool,
) -> int:
    """Drop snapshots of DIR. To free their space, run "weakfs compact" afterwards."""
    from weakfs.cli.commands.host.snapshots import chosen, drop
    from weakfs.cli.directories import open_directory, usage

    if bool(snapshots) == (keep_last is not None):
        raise usage("cannot drop snapshots: none is named; name some, or give --keep-last N; see: weakfs snapshots DIR")
    if tagged and keep_last is None:
        raise usage("cannot use --tagged with names: a named snapshot is dropped whatever its tag; omit --tagged")
    files = open_directory(directory, store=store, read_only=True)
    choice = chosen(files, snapshots, keep_last, tagged=tagged, foreign=foreign)
    drop(Output(finish_unread=True), files, choice, dry_run=dry_run, as_json=as_json)
    return DONE


@click.command("compact")
@directory_argument
@store_option
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=0),
    help="For a session in storage: drop all but the newest N records.",
)
@click.option(
    "--keep-calls", metavar="N", type=click.IntRange(min=0), help="With --keep, also drop all but the newest N calls."
)
@registry_option
@json_option
def compact_command(
    directory: str, store: str | None, keep: int | None, keep_calls: int | None, registry: str | None, as_json: bool
) -> int:
    """Free the contents that no snapshot of DIR needs any more.

    Contents that only a running, unsaved session needs are freed too, so let the session end first.

    With --keep, DIR is the location of a session in storage, such as sqlite:sessions.db#ID. Its older records are
    dropped, with everything that only they needed.
    """
    from weakfs.cli.commands.host.snapshots import compact
    from weakfs.cli.directories import open_directory, usage
    from weakfs.cli.sessions import is_location

    if keep is not None:
        from weakfs.cli.commands.storage.locations import compact_session

        compact_session(Output(finish_unread=True), directory, registry, keep, keep_calls, as_json=as_json)
        return DONE
    if is_location(directory) and not os.path.isdir(directory):
        raise usage("cannot compact a session in storage: the number of records to keep is missing; give --keep N")
    if keep_calls is not None:
        raise usage("cannot use --keep-calls alone: it is for sessions in storage; give --keep N too")
    files = open_directory(directory, store=store, read_only=True)
    compact(Output(finish_unread=True), files, directory, as_json=as_json)
    return DONE


@click.command("repair")
@directory_argument
@store_option
@json_option
def repair_command(directory: str, store: str | None, as_json: bool) -> int:
    """Undo what a killed process left unfinished in DIR.

    Every command that changes DIR does this first, and so does a program that opens it.
    """
    from weakfs.cli.commands.host.restore import repair
    from weakfs.cli.directories import recover

    repair(Output(finish_unread=True), directory, recover(directory, store), as_json=as_json)
    return DONE
