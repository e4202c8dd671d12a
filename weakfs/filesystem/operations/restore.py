"""Snapshots and restores, derived from the primitives."""

from __future__ import annotations

from errno import EROFS

from weakfs.errors import fault
from weakfs.filesystem.path_lookup import PathLookup
from weakfs.filesystem.results import FilesystemSnapshot, Note, RestoreReport
from weakfs.reducers.events import ExternalFsSnapshot, TreeRestored
from weakfs.reducers.tree.node import FileTree


class Restoring(PathLookup):
    """`snapshot` and `restore` for a filesystem whose snapshots are trees in memory."""

    __slots__ = ()

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Take a snapshot of the current files. Costs as much as `tree`."""
        ref = self._next_snapshot_id()
        return FilesystemSnapshot(ref, self.filesystem_id, self.now(), "memory", ref, "/", tag, None, self.tree())

    def restore(
        self, snapshot: FilesystemSnapshot | ExternalFsSnapshot, *, dry_run: bool = False, foreign: bool = False
    ) -> RestoreReport:
        """Restore a snapshot: files only, no other slice. O(differences), for the report.

        Raises `ValueError` for a snapshot of another filesystem, unless `foreign`.
        """
        snapshot = as_snapshot(snapshot)
        check_snapshot(snapshot, self.filesystem_id, read_only=self.read_only, dry_run=dry_run, foreign=foreign)
        tree = self._tree_in(snapshot)
        if tree is None:
            raise ValueError(
                f"cannot restore {snapshot.snapshot_id!r}: it is of kind {snapshot.kind!r} and holds no files in "
                f"memory; restore it on the filesystem that took it"
            )
        if snapshot.filesystem_id != self.filesystem_id:
            self.limits.check_tree(tree)
        with self.lock():
            # Computed before anything changes: the comparison raises if the trees are too large.
            found = report(snapshot.snapshot_id, self.tree(), tree, dry_run=dry_run)
            if not dry_run:
                self.apply(TreeRestored(tree, snapshot.snapshot_id, self.now()))
        self.notify_subscribers()
        return found

    def _next_snapshot_id(self) -> str:
        return f"{self.filesystem_id}@{self.now()}"

    def _tree_in(self, snapshot: FilesystemSnapshot) -> FileTree | None:
        """Return the files of a snapshot; `None` if they are stored elsewhere."""
        return snapshot.tree


def as_snapshot(snapshot: FilesystemSnapshot | ExternalFsSnapshot) -> FilesystemSnapshot:
    """Return the snapshot that a session's record describes; return anything else unchanged."""
    if not isinstance(snapshot, ExternalFsSnapshot):
        return snapshot
    return FilesystemSnapshot(
        snapshot.snapshot_id,
        snapshot.filesystem_id,
        snapshot.created_ns,
        snapshot.kind,
        snapshot.ref,
        snapshot.root_path,
        snapshot.tag,
        snapshot.git_dir,
        None,
        snapshot.data,
    )


def check_snapshot(
    snapshot: FilesystemSnapshot, filesystem_id: str, *, read_only: bool, dry_run: bool, foreign: bool
) -> None:
    """Check that a snapshot can be restored.

    Raises `TypeError` for anything but a snapshot, `ValueError` for a snapshot of another filesystem (unless
    `foreign`), and `PermissionError` if the filesystem is read-only.
    """
    if not isinstance(snapshot, FilesystemSnapshot):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"cannot restore {snapshot!r:.60}: it is not a snapshot of a filesystem; pass what snapshot() returned, or "
            f"use session.rollback for a session's"
        )
    if read_only and not dry_run:
        raise fault(
            PermissionError,
            EROFS,
            f"cannot restore {snapshot.tag or snapshot.snapshot_id!r}: the filesystem is read-only; open it for "
            f"writing to make changes",
        )
    if snapshot.filesystem_id != filesystem_id and not foreign:
        raise ValueError(
            f"cannot restore {snapshot.snapshot_id!r}: it was taken of {snapshot.filesystem_id!r}, and this is "
            f"{filesystem_id!r}; pass foreign=True if that is intended"
        )


def report(
    snapshot_id: str, before: FileTree, after: FileTree, *, dry_run: bool, notes: tuple[Note, ...] = ()
) -> RestoreReport:
    """Return the report of a restore from one tree to another. O(differences)."""
    from weakfs.reducers.tree.diff import diff

    found = diff(before, after)
    written = {*found.added, *found.changed, *(new for _, new in found.moved)}
    removed = {*found.removed, *(old for old, _ in found.moved)}
    return RestoreReport(snapshot_id, tuple(sorted(written)), tuple(sorted(removed)), dry_run, notes)
