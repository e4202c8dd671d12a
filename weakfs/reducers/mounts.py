"""The external trees mounted into a session's files, with what was left out. Rolling back past a mount undoes it."""

from __future__ import annotations

from attrs import frozen

from weakfs.reducers.events import TreeMounted
from weakfs.session import event
from weakfs.session.history.log import Log


@event("fs/mount")
@frozen
class MountReport:
    """One mount: its source, target and size, and each path that was left out with the reason."""

    source: str
    path: str
    file_count: int
    directory_count: int
    total_size: int
    skipped: tuple[tuple[str, str], ...]
    at: int


def on_tree_mounted(reports: Log[MountReport], event: TreeMounted) -> Log[MountReport]:
    """Add a report for a mount into the session's own files."""
    if event.filesystem is not None:
        return reports
    tree = event.tree
    return reports.append(
        MountReport(
            event.source,
            event.path,
            tree.file_count,
            tree.directory_count,
            tree.total_size,
            event.skipped,
            event.at,
        )
    )
