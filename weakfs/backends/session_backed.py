"""Base class of backends whose changes are stored only in slices of a session."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from weakfs.backends.checkout import private_checkout
from weakfs.filesystem import BaseFilesystem, FilesystemSnapshot, Limits, RestoreReport, SymlinkPolicy
from weakfs.filesystem.checkout import Checkout, ReadBack
from weakfs.filesystem.operations.restore import as_snapshot, check_snapshot, report
from weakfs.filesystem.registry import session_of_files
from weakfs.reducers import ExternalFsSnapshot, FileTree, TreeRestored
from weakfs.session import Session, SessionView
from weakfs.snapshots.archive.archived_blob import Archived
from weakfs.snapshots.archive.tar import from_tar, to_tar, unpack_in_place


class SessionFilesystem(BaseFilesystem):
    """A filesystem whose changes are in a session's `FileTree` slice; over a `SessionView` it is read-only."""

    __slots__ = ("_read_only", "_session", "_slice", "follow_symlinks", "limits")

    def __init__(
        self,
        session: Session | SessionView | None,
        limits: Limits,
        read_only: bool,
        follow_symlinks: SymlinkPolicy,
    ) -> None:
        if follow_symlinks not in ("deny", "within_root_only", "allow"):
            raise ValueError(f"follow_symlinks is {follow_symlinks!r}; use 'deny', 'within_root_only' or 'allow'")
        self._session = session = session if isinstance(session, SessionView) else session_of_files(session)
        self.limits = limits
        self.follow_symlinks: SymlinkPolicy = follow_symlinks
        self._read_only = read_only or isinstance(session, SessionView)
        self._slice = session[FileTree]

    @property
    def session(self) -> Session | None:
        """The session that holds the changes; `None` over a view."""
        return self._session if isinstance(self._session, Session) else None

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""
        return self._read_only

    @property
    @abstractmethod
    def filesystem_id(self) -> str:
        """The id of this filesystem in snapshots: that of the session, or of the one it was forked from."""

    @abstractmethod
    def tree(self) -> FileTree:
        """Return all files as one immutable value."""

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Take a snapshot of the current files, at the cost of `tree`. The session's own snapshots cover all slices."""
        session = self._session
        ref = session.next_id("files") if isinstance(session, Session) else f"record {session.seq}"
        return FilesystemSnapshot(ref, self.filesystem_id, self._now(), "memory", ref, "/", tag, None, self.tree())

    def restore(
        self, snapshot: FilesystemSnapshot | ExternalFsSnapshot, *, dry_run: bool = False, foreign: bool = False
    ) -> RestoreReport:
        """Restore a snapshot: files only, no other slice. O(differences), for the report.

        Raises `ValueError` for a snapshot of another filesystem, unless `foreign`.
        """
        snapshot = as_snapshot(snapshot)
        check_snapshot(snapshot, self.filesystem_id, read_only=self._read_only, dry_run=dry_run, foreign=foreign)
        tree = snapshot.tree
        if tree is None and snapshot.data is not None:
            tree = unpack_in_place(Archived(snapshot.data), limits=self.limits, at=snapshot.created_at)
        if tree is None:
            raise ValueError(
                f"cannot restore {snapshot.snapshot_id!r}: it is of kind {snapshot.kind!r} and holds no files in "
                f"memory; restore it on the filesystem that took it"
            )
        if snapshot.filesystem_id != self.filesystem_id:
            self.limits.check_tree(tree)
        with self._exclusive():
            # Computed before anything changes: the comparison raises if the trees are too large.
            found = report(snapshot.snapshot_id, self.tree(), tree, dry_run=dry_run)
            if not dry_run:
                self._commit(TreeRestored(tree, snapshot.snapshot_id, self._now()))
        self._told()
        return found

    def export_bytes(self) -> bytes:
        """Return all files as one tar archive; equal files give equal bytes."""
        return to_tar(self.tree())

    def import_bytes(self, data: bytes) -> None:
        """Replace all files with those of a tar archive; see `weakfs.snapshots.from_tar` for what it refuses."""
        self._refuse_if_read_only("import into", "/")
        tree = from_tar(data, limits=self.limits, at=self._now())
        with self._exclusive():
            self._commit(TreeRestored(tree, "archive", self._now()))
        self._told()

    def checkout(
        self,
        path: str = "/",
        *,
        read_back: ReadBack = ReadBack(),  # noqa: B008  # frozen
    ) -> AbstractContextManager[Checkout]:
        """Check the files out into a private host directory, for a program to work on; see `SupportsCheckout`."""
        return private_checkout(self, self._changing("run a program in", path), path, read_back)

    def _changing(self, verb: str, path: str) -> Session:
        self._refuse_if_read_only(verb, path)
        return cast(Session, self._session)

    def _now(self) -> int:
        return self._session.now() if isinstance(self._session, Session) else 0

    def _told(self) -> None:
        if isinstance(self._session, Session):
            self._session._notify()

    def _exclusive(self) -> AbstractContextManager[Any]:
        return self._session.lock if isinstance(self._session, Session) else nullcontext()
