"""`weakfs snapshot`, `snapshots`, `drop` and `compact`: the snapshots of a directory and their cost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, UNMET, as_failure, usage
from weakfs.cli.formatting import counted, moment, shown, typed
from weakfs.cli.options import (
    directory_argument,
    foreign_option,
    json_option,
    kind_option,
    registry_option,
    store_option,
)
from weakfs.cli.output import Output, progress, warn

if TYPE_CHECKING:
    from weakfs.backends import HostFilesystem
    from weakfs.backends.host.snapshot_kinds import SnapshotKind
    from weakfs.snapshots import StoredSnapshot

    # A snapshot, and what dropping it would free, if that is known.
    Listed = tuple[StoredSnapshot, int | None]

HEADINGS = ("id", "taken", "kind", "files", "bytes", "frees", "tag")
# The right-aligned columns.
NUMBERS = (3, 4, 5)


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
    from weakfs.cli.directories import open_directory

    files = open_directory(directory, store=store, kind=kind, max_bytes=max_bytes)
    taken = take(files, directory, tag)
    show_taken(Output(finish_unread=True), files, taken, as_json=as_json)
    return DONE


@click.command("snapshots")
@directory_argument
@click.option("--verify", is_flag=True, help="Read everything, to find all damage.")
@store_option
@json_option
def snapshots_command(directory: str, verify: bool, store: str | None, as_json: bool) -> int:
    """List the snapshots of DIR, oldest first.

    "frees" is the number of bytes freed by dropping that snapshot alone; "bytes" is the size of its files. Exit with 3
    if a snapshot is found to be damaged or incomplete, and name it; damaged contents are found only with --verify.
    """
    from weakfs.cli.directories import open_directory, short_ids

    files = open_directory(directory, store=store, read_only=True)
    out = Output()
    with as_failure(f"read the store of {directory!r}"), progress("reading" if verify else "adding up"):
        found, damaged = _listed(files, verify=verify)
        size = files.store.disk_size()
    if as_json:
        for one, frees in found:
            out.record(type="snapshot", **described(one), frees=frees)
        for snapshot_id, cause in damaged.items():
            out.record(type="damaged", id=snapshot_id, cause=cause)
        out.record(type="store", path=files.store.path, root=files.root, snapshots=len(found), bytes=size)
        return UNMET if damaged else DONE
    names = short_ids(files.store)
    if found:
        _show_table(out, found, names)
    out.line(
        ("store", "bold"),
        f" {shown(files.store.path)}: {counted(len(found), 'snapshot')}, {counted(size, 'byte')} on disk",
    )
    for snapshot_id, cause in damaged.items():
        out.line(("damaged", "bold"), f" {names.get(snapshot_id, shown(snapshot_id))}: {shown(cause)}")
    if verify and not damaged:
        out.line(("verified", "bold"), ": no damage")
    return UNMET if damaged else DONE


def _listed(files: HostFilesystem, *, verify: bool) -> tuple[list[Listed], dict[str, str]]:
    """Return the snapshots of a directory, and what is damaged or missing, by id; contents only if they are verified.

    Damaged entries may belong to other directories that share the store.
    """
    from weakfs.cli.directories import belongs_to
    from weakfs.session import MissingBlob
    from weakfs.snapshots import StoreDamaged

    entries, damaged = files.store.catalogue.readable()
    own = [one for one in entries if belongs_to(files, one)]
    frees: dict[str, int] = {}
    # What damaged snapshots share with others is unknown.
    with suppress(MissingBlob, StoreDamaged):
        frees = {one.snapshot.snapshot_id: one.frees for one in files.store.account()}
    if verify:
        damaged = {**damaged, **files.store.verify(own)}
    elif not frees:
        damaged = {**damaged, **_incomplete(files, own)}
    return [(one, frees.get(one.snapshot_id)) for one in own], damaged


def _incomplete(files: HostFilesystem, snapshots: Iterable[StoredSnapshot]) -> dict[str, str]:
    """Return the snapshots whose directories cannot be read, with the causes."""
    from weakfs.session import MissingBlob
    from weakfs.snapshots import StoreDamaged

    found: dict[str, str] = {}
    for one in snapshots:
        try:
            files.store.tree(one)
        except (MissingBlob, StoreDamaged) as error:
            found[one.snapshot_id] = str(error)
    return found


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
    from weakfs.cli.directories import open_directory, short_ids

    if bool(snapshots) == (keep_last is not None):
        raise usage("cannot drop snapshots: none is named; name some, or give --keep-last N; see: weakfs snapshots DIR")
    if tagged and keep_last is None:
        raise usage("cannot use --tagged with names: a named snapshot is dropped whatever its tag; omit --tagged")
    files = open_directory(directory, store=store, read_only=True)
    dropped, kept, damaged = _selected(files, snapshots, keep_last, tagged=tagged, foreign=foreign)
    short = short_ids(files.store)
    out = Output(finish_unread=True)
    for snapshot_id, one in dropped.items():
        if not dry_run:
            with as_failure(f"drop snapshots of {files.root!r}"):
                files.store.drop(snapshot_id)
        if as_json:
            fields = {"id": snapshot_id} if one is None else described(one)
            out.record(type="would_drop" if dry_run else "dropped", **fields)
        else:
            about = "(damaged)" if one is None else shown(one.tag or "")
            what = ("would drop" if dry_run else "dropped", "bold")
            out.line(what, " ", (short[snapshot_id], "yellow"), about and f"  {about}")
    for snapshot_id, cause in damaged.items():
        warn(f"kept {short[snapshot_id]}, which is damaged: {cause}")
    if as_json:
        return DONE
    if not dropped:
        out.line("nothing to drop")
    if kept:
        out.line(f"kept {counted(kept, 'older snapshot')} with a tag; to drop tagged ones too: --tagged")
    if dropped and not dry_run:
        out.line(f"to free what only they needed: {typed('weakfs', 'compact', files.root)}")
    return DONE


def _selected(
    files: HostFilesystem, names: Sequence[str], keep_last: int | None, *, tagged: bool, foreign: bool
) -> tuple[dict[str, StoredSnapshot | None], int, Mapping[str, str]]:
    """Return the snapshots to drop by id, how many stay only because of their tags, and why others are damaged.

    Select those named, whose entries may be damaged (`None`), or all intact ones but the last few and the tagged ones;
    refuse all if any name is wrong.
    """
    from weakfs.cli.directories import belongs_to, find, find_id
    from weakfs.snapshots.store.catalogue import all_but_last

    with as_failure(f"drop snapshots of {files.root!r}"):
        entries, damaged = files.store.catalogue.readable()
        if keep_last is None:
            ids = [find_id(files.store, name) for name in names]
            return {one: None if one in damaged else find(files, one, foreign=foreign) for one in ids}, 0, {}
        own = [one for one in entries if belongs_to(files, one)]
        dropped = all_but_last(own, keep_last, drop_tagged=tagged)
        kept = len(all_but_last(own, keep_last, drop_tagged=True)) - len(dropped)
        return {one.snapshot_id: one for one in dropped}, kept, damaged


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
    from weakfs.cli.commands.storage.locations import compact_session
    from weakfs.cli.directories import open_directory
    from weakfs.cli.sessions import is_location

    if keep is not None:
        return compact_session(directory, registry, keep, keep_calls, as_json=as_json)
    if is_location(directory) and not os.path.isdir(directory):
        raise usage("cannot compact a session in storage: the number of records to keep is missing; give --keep N")
    if keep_calls is not None:
        raise usage("cannot use --keep-calls alone: it is for sessions in storage; give --keep N too")
    files = open_directory(directory, store=store, read_only=True)
    with as_failure(f"compact the store of {directory!r}"), progress(f"compacting {files.store.path}"):
        report = files.store.compact()
    out = Output(finish_unread=True)
    if as_json:
        out.record(
            type="compacted",
            path=files.store.path,
            bytes_before=report.bytes_before,
            bytes_after=report.bytes_after,
            packs_before=report.packs_before,
            packs_after=report.packs_after,
        )
        return DONE
    freed = report.bytes_before - report.bytes_after
    out.line(("compacted", "bold"), f" freed {counted(freed, 'byte')}, {counted(report.bytes_after, 'byte')} left")
    return DONE


def take(files: HostFilesystem, directory: str, tag: str | None) -> StoredSnapshot:
    """Take a snapshot of a directory and return its entry in the store."""
    from weakfs.cli.directories import scanning
    from weakfs.session.codec.scalars import is_text

    if tag is not None and not is_text(tag):
        raise usage(f"cannot use the tag {tag!r}: it is not valid UTF-8; give another one")
    with as_failure(f"take a snapshot of {directory!r}"), scanning(files, f"reading {directory}"):
        return files.store.get(files.snapshot(tag).snapshot_id)


def show_taken(out: Output, files: HostFilesystem, taken: StoredSnapshot, *, as_json: bool) -> None:
    """Print a snapshot that was just taken."""
    from weakfs.cli.directories import short_ids

    if as_json:
        out.record(type="snapshot", **described(taken), root=files.root, store=files.store.path)
        return
    name = short_ids(files.store)[taken.snapshot_id]
    tag = "" if taken.tag is None else f"  {shown(taken.tag)}"
    what = f"{counted(taken.file_count, 'file')}, {counted(taken.total_size, 'byte')}"
    out.line(("snapshot", "bold"), " ", (name, "yellow"), f"{tag}: {what}")


def described(stored: StoredSnapshot) -> dict[str, object]:
    """Return the JSON fields of a snapshot."""
    return {
        "id": stored.snapshot_id,
        "tag": stored.tag,
        "kind": stored.kind,
        "at": moment(stored.created_ns, fraction=True),
        "files": stored.file_count,
        "directories": stored.directory_count,
        "bytes": stored.total_size,
    }


def _show_table(out: Output, found: Sequence[Listed], short: Mapping[str, str]) -> None:
    rows = [HEADINGS, *(_row(short[one.snapshot_id], one, frees) for one, frees in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if column in NUMBERS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        rest = "  ".join(["", *cells[1:]]).rstrip()
        out.line(*(((cells[0] + rest, "bold"),) if number == 0 else ((cells[0], "yellow"), rest)))


def _row(name: str, stored: StoredSnapshot, frees: int | None) -> tuple[str, ...]:
    return (
        name,
        moment(stored.created_ns),
        stored.kind,
        f"{stored.file_count:,}",
        f"{stored.total_size:,}",
        "?" if frees is None else f"{frees:,}",
        shown(stored.tag or ""),
    )
