"""`weakfs restore` and `weakfs repair`: bring a directory back to an earlier state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from weakfs.cli.commands.host.snapshots import described, take
from weakfs.cli.commands.sessions.diff import amounts, named, show_names
from weakfs.cli.errors import DONE, INTERRUPTED, UNMET, Failure, as_failure, usage
from weakfs.cli.formatting import counted, shown, typed
from weakfs.cli.options import EXIT_STATUSES, directory_argument, foreign_option, json_option, store_option
from weakfs.cli.output import Output

if TYPE_CHECKING:
    from weakfs.backends import HostFilesystem
    from weakfs.filesystem import RestoreReport
    from weakfs.reducers import FileTree, TreeDiff
    from weakfs.snapshots import StoredSnapshot


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
    from weakfs.cli.directories import BEFORE_RESTORING, find, newest, open_directory, short_ids

    if latest == (snapshot is not None):
        raise usage("cannot restore: no snapshot is named; name one, or give --latest; see: weakfs snapshots DIR")
    files = open_directory(directory, store=store, read_only=dry_run)
    out = Output(finish_unread=True)
    with as_failure(f"restore {directory!r}"):
        wanted = newest(files) if snapshot is None else find(files, snapshot, foreign=foreign)
    short = short_ids(files.store)[wanted.snapshot_id]
    before = take(files, directory, f"{BEFORE_RESTORING}{short}") if keep and not dry_run else None
    if before is not None:
        _show_kept(out, files, before, as_json=as_json)
    report = _go_to(files, directory, wanted, dry_run=dry_run)
    found = changes(files._root.last_tree, report)
    if as_json:
        for one in named(found):
            out.record(type="change", change=one.change, path=one.path)
        kind = "would_restore" if dry_run else "restored"
        out.record(type=kind, **described(wanted), before=None if before is None else before.snapshot_id)
    else:
        show_names(out, found)
        out.line(("would restore" if dry_run else "restored", "bold"), " ", (short, "yellow"), f": {amounts(found)}")
    return UNMET if exit_code and (report.written or report.removed) else DONE


@click.command("repair")
@directory_argument
@store_option
@json_option
def repair_command(directory: str, store: str | None, as_json: bool) -> int:
    """Undo what a killed process left unfinished in DIR.

    Every command that changes DIR does this first, and so does a program that opens it.
    """
    from weakfs.cli.directories import recover

    undone = recover(directory, store)
    out = Output(finish_unread=True)
    if as_json:
        out.record(type="repaired", root=directory, undone=undone)
    elif undone:
        pieces = counted(undone, "operation")
        out.line(("repaired", "bold"), f" {shown(directory)}: undid {pieces} left unfinished")
    else:
        out.line(f"nothing to repair in {shown(directory)}")
    return DONE


def changes(before: FileTree, report: RestoreReport) -> TreeDiff:
    """Return the changes of a restore: for each path it wrote, whether something was there before."""
    from weakfs.reducers import TreeDiff
    from weakfs.reducers.apply import segments_of
    from weakfs.reducers.tree.node import find as entry_at

    there = {path: entry_at(before, segments_of(path)) is not None for path in report.written}
    return TreeDiff(
        tuple(path for path in report.written if not there[path]),
        report.removed,
        tuple(path for path in report.written if there[path]),
        (),
    )


def _go_to(files: HostFilesystem, directory: str, wanted: StoredSnapshot, *, dry_run: bool) -> RestoreReport:
    from weakfs.cli.directories import scanning, snapshot_of

    try:
        with as_failure(f"restore {directory!r}"), scanning(files, f"restoring {directory}"):
            return files.restore(snapshot_of(files, wanted), dry_run=dry_run)
    except KeyboardInterrupt:
        # Usually the directory is unchanged, but the interrupt may have come after the commit, which is the last step.
        see = typed("weakfs", "restore", directory, wanted.snapshot_id, "--dry-run")
        raise Failure(f"interrupted; to check the state of {directory!r}: {see}", status=INTERRUPTED) from None


def _show_kept(out: Output, files: HostFilesystem, before: StoredSnapshot, *, as_json: bool) -> None:
    if as_json:
        out.record(type="snapshot", **described(before))
        return
    from weakfs.cli.directories import short_ids

    name = short_ids(files.store)[before.snapshot_id]
    out.line(("kept", "bold"), " the previous state as ", (name, "yellow"), "; restore that to undo this")
