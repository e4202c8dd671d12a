"""Checkouts: files that are not on the host, written to a private host directory while a program works on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from weakfs.backends.temporary_directories import scratch
from weakfs.class_decorators import define
from weakfs.filesystem import BaseFilesystem, Limits
from weakfs.filesystem.checkout import ReadBack
from weakfs.filesystem.paths import join
from weakfs.reducers import diff
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree.diff import differences
from weakfs.reducers.tree.leaf import size_of
from weakfs.reducers.tree.node import FileTree, find, walk
from weakfs.session import Session
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.scan.read_back import events_between, placed_below, without_set_id
from weakfs.snapshots.scan.scan import scan
from weakfs.snapshots.scan.scan_limits import ScanLimits
from weakfs.snapshots.scan.sinks import InMemorySink


@define
class CheckoutDirectory:
    """A directory that represents some files; all fields but `directory` are set when the program is done."""

    directory: str
    changed: tuple[str, ...] = ()
    set_id_removed: tuple[str, ...] = ()


@contextmanager
def private_checkout(
    filesystem: BaseFilesystem, session: Session, path: str, read_back: ReadBack
) -> Iterator[CheckoutDirectory]:
    """Check files out, and turn the changes made to them into events of the session if the block succeeds.

    Costs one write and one read of all the files. If anything is raised, nothing has changed.
    """
    filesystem._refuse_if_read_only("run a program in", path)
    canonical, segments = filesystem._directory(path, "run a program in")
    whole = filesystem.tree()
    before = find(whole, segments)
    assert type(before) is FileTree
    with scratch() as directory:
        host = HostDirectory(directory)
        host.fill(before)
        laid = CheckoutDirectory(host.root)
        yield laid
        bounds = ScanLimits(filesystem.limits, read_back, before, prefix=canonical, whole=whole)
        after, removed = without_set_id(before, scan(host.descriptor, InMemorySink(), bounds=bounds).tree)
        laid.set_id_removed = tuple(join(canonical, one[1:]) if one != "/" else canonical for one in removed)
        with session.transaction(cause=session._cause_of_one_change()):
            for event in events_between(before, after, at=session.now()):
                filesystem.apply(placed_below(event, canonical))
            check_made(filesystem.limits, before, after, canonical, filesystem.tree())
        laid.changed = changed_paths(before, after, canonical)


def check_made(limits: Limits, before: FileTree, after: FileTree, prefix: str, whole: FileTree) -> None:
    """Raise `OSError` if the entries that a program made exceed the limits. Earlier excesses are ignored."""
    limits.check_quota(
        prefix,
        size=0,
        more_size=whole.total_size if after.total_size > before.total_size else 0,
        nodes=0,
        more_nodes=whole.node_count if after.node_count > before.node_count else 0,
    )
    base = "" if prefix == "/" else prefix
    for path, old, new in differences(before, after):
        for below, node in [] if new is None else [(path, new), *(walk(new, path) if type(new) is FileTree else ())]:
            if old is None:
                limits.check_path(base + below, segments_of(base + below))
            if type(node) is not FileTree:
                limits.check_size(base + below, size_of(node))


def changed_paths(before: FileTree, after: FileTree, prefix: str) -> tuple[str, ...]:
    """Return the paths that were added, changed or removed, sorted."""
    found = diff(before, after)
    moved = {one for pair in found.moved for one in pair}
    paths = {*found.added, *found.removed, *found.changed, *moved}
    return tuple(sorted(path if prefix == "/" else (prefix + path).rstrip("/") for path in paths))
