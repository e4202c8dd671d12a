"""Base class of backends whose changes are stored only in slices of a session."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from weakfs.filesystem import BaseFilesystem, FilesystemSnapshot, Limits, SymlinkPolicy
from weakfs.filesystem.checkout import Checkout, ReadBack
from weakfs.filesystem.limits import checked_limits
from weakfs.filesystem.primitives import check_symlink_policy
from weakfs.filesystem.registry import session_of_files
from weakfs.reducers import FileTree, TreeRestored
from weakfs.session import Session, SessionView


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
        check_symlink_policy(follow_symlinks)
        self._session = session = session if isinstance(session, SessionView) else session_of_files(session)
        self.limits = checked_limits(limits)
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

    def _next_snapshot_id(self) -> str:
        session = self._session
        return session.next_id("files") if isinstance(session, Session) else f"record {session.seq}"

    def _tree_in(self, snapshot: FilesystemSnapshot) -> FileTree | None:
        if snapshot.tree is None and snapshot.data is not None:
            from weakfs.snapshots.archive.archived_blob import Archived
            from weakfs.snapshots.archive.tar import unpack_in_place

            return unpack_in_place(Archived(snapshot.data), limits=self.limits, at=snapshot.created_ns)
        return snapshot.tree

    def export_bytes(self) -> bytes:
        """Return all files as one tar archive; equal files give equal bytes."""
        from weakfs.snapshots.archive.tar import to_tar

        return to_tar(self.tree())

    def import_bytes(self, data: bytes) -> None:
        """Replace all files with those of a tar archive; see `weakfs.snapshots.from_tar` for what it refuses."""
        from weakfs.snapshots.archive.tar import from_tar

        self._refuse_if_read_only("import into", "/")
        tree = from_tar(data, limits=self.limits, at=self.now())
        with self.lock():
            self.apply(TreeRestored(tree, "archive", self.now()))
        self.notify_subscribers()

    def checkout(
        self,
        path: str = "/",
        *,
        read_back: ReadBack = ReadBack(),  # noqa: B008  # frozen
    ) -> AbstractContextManager[Checkout]:
        """Check the files out into a private host directory, for a program to work on; see `SupportsCheckout`."""
        from weakfs.backends.checkout import private_checkout

        return private_checkout(self, self._changing("run a program in", path), path, read_back)

    def _changing(self, verb: str, path: str) -> Session:
        self._refuse_if_read_only(verb, path)
        return cast(Session, self._session)

    def now(self) -> int:
        return self._session.now() if isinstance(self._session, Session) else 0

    def notify_subscribers(self) -> None:
        if isinstance(self._session, Session):
            self._session._notify()

    def lock(self) -> AbstractContextManager[Any]:
        return self._session.lock if isinstance(self._session, Session) else nullcontext()
