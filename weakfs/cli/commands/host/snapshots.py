"""`weakfs snapshot`, `snapshots`, `drop` and `compact`: the snapshots of a directory and their cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weakfs.backends import HostFilesystem
from weakfs.class_decorators import frozen
from weakfs.cli.directories import belongs_to, find, scanning, short_ids, usage
from weakfs.cli.errors import as_failure
from weakfs.cli.formatting import counted, moment, shown, typed
from weakfs.cli.output import Output, progress
from weakfs.session.codec.scalars import is_text
from weakfs.snapshots import StoredSnapshot
from weakfs.snapshots.store.catalogue import all_but_last
from weakfs.snapshots.store.compaction import SnapshotAccount

HEADINGS = ("id", "taken", "kind", "files", "bytes", "frees", "tag")
# The right-aligned columns.
NUMBERS = (3, 4, 5)


def take(files: HostFilesystem, directory: str, tag: str | None) -> StoredSnapshot:
    """Take a snapshot of a directory and return its entry in the store."""
    if tag is not None and not is_text(tag):
        raise usage(f"cannot use the tag {tag!r}: it is not valid UTF-8; give another one")
    with as_failure(f"take a snapshot of {directory!r}"), scanning(files, f"reading {directory}"):
        return files.store.get(files.snapshot(tag).snapshot_id)


def show_taken(out: Output, files: HostFilesystem, taken: StoredSnapshot, *, as_json: bool) -> None:
    """Print a snapshot that was just taken."""
    if as_json:
        out.record(type="snapshot", **described(taken), root=files.root, store=files.store.path)
        return
    name = short_ids(files.store.list())[taken.snapshot_id]
    tag = "" if taken.tag is None else f"  {shown(taken.tag)}"
    what = f"{counted(taken.file_count, 'file')}, {counted(taken.total_size, 'byte')}"
    out.line(("snapshot", "bold"), " ", (name, "yellow"), f"{tag}: {what}")


def show_snapshots(out: Output, files: HostFilesystem, directory: str, *, as_json: bool) -> None:
    """Print the snapshots of a directory, oldest first, with the cost of each and the total."""
    with as_failure(f"read the store of {directory!r}"), progress("adding up"):
        found = [one for one in files.store.account() if belongs_to(files, one.snapshot)]
        size = files.store.disk_size()
    if as_json:
        for one in found:
            out.record(type="snapshot", **described(one.snapshot), frees=one.frees)
        out.record(type="store", path=files.store.path, root=files.root, snapshots=len(found), bytes=size)
        return
    if found:
        _show_table(out, found, short_ids(files.store.list()))
    out.line(
        ("store", "bold"),
        f" {shown(files.store.path)}: {counted(len(found), 'snapshot')}, {counted(size, 'byte')} on disk",
    )


@frozen
class Choice:
    """Snapshots to drop, and those kept only because they have a tag; `short` maps each id to its short form."""

    dropped: tuple[StoredSnapshot, ...]
    kept: tuple[StoredSnapshot, ...]
    short: Mapping[str, str]


def chosen(
    files: HostFilesystem, names: Sequence[str], keep_last: int | None, *, tagged: bool, foreign: bool
) -> Choice:
    """Return the named snapshots, or all but the last few and the tagged ones; refuse all if any name is wrong."""
    with as_failure(f"drop snapshots of {files.root!r}"):
        every = files.store.list()
        short = short_ids(every)
        if keep_last is None:
            named = (find(files, name, foreign=foreign) for name in names)
            return Choice(tuple({one.snapshot_id: one for one in named}.values()), (), short)
        own = [one for one in every if belongs_to(files, one)]
        dropped = all_but_last(own, keep_last, drop_tagged=tagged)
        older = all_but_last(own, keep_last, drop_tagged=True)
        return Choice(dropped, tuple(one for one in older if one not in dropped), short)


def drop(out: Output, files: HostFilesystem, choice: Choice, *, dry_run: bool, as_json: bool) -> None:
    """Drop snapshots and list them, or only list them with `dry_run`."""
    for one in choice.dropped:
        if not dry_run:
            with as_failure(f"drop snapshots of {files.root!r}"):
                files.store.drop(one.snapshot_id)
        if as_json:
            out.record(type="would_drop" if dry_run else "dropped", **described(one))
        else:
            tag = "" if one.tag is None else f"  {shown(one.tag)}"
            out.line(
                ("would drop" if dry_run else "dropped", "bold"), " ", (choice.short[one.snapshot_id], "yellow"), tag
            )
    if as_json:
        return
    if not choice.dropped:
        out.line("nothing to drop")
    if choice.kept:
        out.line(f"kept {counted(len(choice.kept), 'older snapshot')} with a tag; to drop tagged ones too: --tagged")
    if choice.dropped and not dry_run:
        out.line(f"to free what only they needed: {typed('weakfs', 'compact', files.root)}")


def compact(out: Output, files: HostFilesystem, directory: str, *, as_json: bool) -> None:
    """Discard everything that no snapshot and no running work needs."""
    with as_failure(f"compact the store of {directory!r}"), progress(f"compacting {files.store.path}"):
        report = files.store.compact()
    if as_json:
        out.record(
            type="compacted",
            path=files.store.path,
            bytes_before=report.bytes_before,
            bytes_after=report.bytes_after,
            packs_before=report.packs_before,
            packs_after=report.packs_after,
        )
        return
    freed = report.bytes_before - report.bytes_after
    out.line(("compacted", "bold"), f" freed {counted(freed, 'byte')}, {counted(report.bytes_after, 'byte')} left")


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


def _show_table(out: Output, found: Sequence[SnapshotAccount], short: Mapping[str, str]) -> None:
    rows = [HEADINGS, *(_row(short[one.snapshot.snapshot_id], one) for one in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    for number, row in enumerate(rows):
        cells = [
            cell.rjust(width) if column in NUMBERS else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        rest = "  ".join(["", *cells[1:]]).rstrip()
        out.line(*(((cells[0] + rest, "bold"),) if number == 0 else ((cells[0], "yellow"), rest)))


def _row(name: str, one: SnapshotAccount) -> tuple[str, ...]:
    stored = one.snapshot
    return (
        name,
        moment(stored.created_ns),
        stored.kind,
        f"{stored.file_count:,}",
        f"{one.total_size:,}",
        f"{one.frees:,}",
        shown(stored.tag or ""),
    )
