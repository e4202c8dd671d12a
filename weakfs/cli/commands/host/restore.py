"""`weakfs restore` and `weakfs repair`: bring a directory back to an earlier state."""

from __future__ import annotations

from weakfs.backends import HostFilesystem
from weakfs.cli.commands.host.snapshots import described, take
from weakfs.cli.commands.sessions.diff import amounts, named, show_names
from weakfs.cli.directories import BEFORE_RESTORING, find, newest, scanning, short_ids, snapshot_of
from weakfs.cli.errors import INTERRUPTED, Failure, as_failure
from weakfs.cli.formatting import counted, shown, typed
from weakfs.cli.output import Output
from weakfs.filesystem import RestoreReport
from weakfs.reducers import FileTree, TreeDiff
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree.node import find as entry_at
from weakfs.snapshots import StoredSnapshot


def restore(
    out: Output,
    files: HostFilesystem,
    directory: str,
    name: str | None,
    *,
    foreign: bool,
    dry_run: bool,
    keep: bool,
    as_json: bool,
) -> bool:
    """Restore a directory to a snapshot and print what changes; return whether anything did.

    If `name` is `None`, use the newest snapshot. With `keep`, first take and print a snapshot of the current state.
    """
    with as_failure(f"restore {directory!r}"):
        wanted = newest(files) if name is None else find(files, name, foreign=foreign)
    short = short_ids(files.store.list())[wanted.snapshot_id]
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
    return bool(report.written or report.removed)


def repair(out: Output, directory: str, undone: int, *, as_json: bool) -> None:
    """Print how much unfinished work was undone when the directory was opened."""
    if as_json:
        out.record(type="repaired", root=directory, undone=undone)
    elif undone:
        pieces = counted(undone, "operation")
        out.line(("repaired", "bold"), f" {shown(directory)}: undid {pieces} left unfinished")
    else:
        out.line(f"nothing to repair in {shown(directory)}")


def changes(before: FileTree, report: RestoreReport) -> TreeDiff:
    """Return the changes of a restore: for each path it wrote, whether something was there before."""
    there = {path: entry_at(before, segments_of(path)) is not None for path in report.written}
    return TreeDiff(
        tuple(path for path in report.written if not there[path]),
        report.removed,
        tuple(path for path in report.written if there[path]),
        (),
    )


def _go_to(files: HostFilesystem, directory: str, wanted: StoredSnapshot, *, dry_run: bool) -> RestoreReport:
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
    name = short_ids(files.store.list())[before.snapshot_id]
    out.line(("kept", "bold"), " the previous state as ", (name, "yellow"), "; restore that to undo this")
