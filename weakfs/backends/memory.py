"""A filesystem whose files are a slice of a session: snapshots are the session's own, O(1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar, cast

from weakfs.backends.checkout import private_checkout
from weakfs.backends.mount import HostMount, check_places, mount
from weakfs.filesystem import BaseFilesystem, FilesystemSnapshot, Limits, RestoreReport, SymlinkPolicy
from weakfs.filesystem.checkout import Checkout
from weakfs.filesystem.restoring import as_snapshot, check_snapshot, report
from weakfs.reducers import ExternalFsSnapshot, FileTree, MountReport, TreeRestored
from weakfs.reducers import children as maps
from weakfs.reducers.events import Event
from weakfs.reducers.leaf import Leaf, content_of
from weakfs.reducers.tree import EMPTY_TREE, Node, Segments, height
from weakfs.session import Session, SessionView
from weakfs.snapshots.archive import pack, unpack, unpack_in_place
from weakfs.snapshots.archived import Archived

Self = TypeVar("Self", bound="InMemoryFilesystem")


class InMemoryFilesystem(BaseFilesystem):
    """Files in a session's `FileTree` slice.

    Without a session it makes one of its own. `mounts` are copied in as one event each; one that a loaded
    session holds already is not repeated. Over a `SessionView` it shows the files of that moment, read-only.
    Limits are of this object: another one over the same session may have others.
    """

    __slots__ = ("_read_only", "_session", "_slice", "follow_symlinks", "limits")

    def __init__(
        self,
        session: Session | SessionView | None = None,
        *,
        mounts: Sequence[HostMount] = (),
        limits: Limits = Limits(),  # noqa: B008  # frozen
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
    ) -> None:
        if follow_symlinks not in ("deny", "within_root_only", "allow"):
            raise ValueError(f"follow_symlinks is {follow_symlinks!r}; use 'deny', 'within_root_only' or 'allow'")
        self._session = session = Session() if session is None else session
        self.limits = limits
        self.follow_symlinks: SymlinkPolicy = follow_symlinks
        self._read_only = read_only or isinstance(session, SessionView)
        self._slice = session[FileTree]
        if isinstance(session, Session):
            check_places(mounts)
            for wanted in mounts:
                mount(session, wanted, limits)

    def __repr__(self) -> str:
        return f"<InMemoryFilesystem of {self._session!r}>"

    @property
    def session(self) -> Session | None:
        """The session that holds the files; `None` over a view."""
        return self._session if isinstance(self._session, Session) else None

    @property
    def root(self) -> str:
        """The root, which is `/`: there is no other place where these files lie."""
        return "/"

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""
        return self._read_only

    @property
    def filesystem_id(self) -> str:
        """What snapshots of this filesystem are known by: the session, or the one that it was forked from."""
        session = self._session
        return f"memory:{session.origin_id}" if isinstance(session, Session) else "memory:view"

    @property
    def mounts(self) -> tuple[MountReport, ...]:
        """What was mounted into the session, with what was left out."""
        return self._session[MountReport].all()

    def bind(self, session: Session) -> InMemoryFilesystem:
        """Give the same filesystem over another session, such as a fork."""
        return InMemoryFilesystem(
            session, limits=self.limits, read_only=self._read_only, follow_symlinks=self.follow_symlinks
        )

    # The whole

    def tree(self) -> FileTree:
        """Give all files as one immutable value. O(1)."""
        return self._slice.latest() or EMPTY_TREE

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Keep the files as they are now. O(1). The session's own snapshots keep all its slices."""
        session = self._session
        ref = session.next_id("files") if isinstance(session, Session) else f"record {session.seq}"
        return FilesystemSnapshot(ref, self.filesystem_id, self._now(), "memory", ref, "/", tag, None, self.tree())

    def restore(
        self, snapshot: FilesystemSnapshot | ExternalFsSnapshot, *, dry_run: bool = False, foreign: bool = False
    ) -> RestoreReport:
        """Go back to a snapshot: files only, no other slice. O(what differs), for the report.

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
            before = self.tree()
            if not dry_run:
                self._commit(TreeRestored(tree, snapshot.snapshot_id, self._now()))
        self._told()
        return report(snapshot.snapshot_id, before, tree, dry_run=dry_run)

    def export_bytes(self) -> bytes:
        """Give all files as one tar archive; the same files give the same bytes."""
        return pack(self.tree())

    def import_bytes(self, data: bytes) -> None:
        """Replace all files with those of a tar archive; see `weakfs.snapshots.archive.unpack` for what it refuses."""
        self._refuse_if_read_only("import into", "/")
        tree = unpack(data, limits=self.limits, at=self._now())
        self._commit(TreeRestored(tree, "archive", self._now()))

    def checkout(self, path: str = "/") -> AbstractContextManager[Checkout]:
        """Lay the files out in a private directory of the host, for a program to work on; see `SupportsCheckout`."""
        session = self._session
        if not isinstance(session, Session):
            self._refuse_if_read_only("run a program in", path)
        return private_checkout(self, cast(Session, session), path)

    # Primitives

    def _pinned(self) -> InMemoryFilesystem:
        session = self._session
        if isinstance(session, SessionView):
            return self
        return InMemoryFilesystem(session.view(), limits=self.limits, follow_symlinks=self.follow_symlinks)

    def _find(self, segments: Segments) -> Node | None:
        # The same as `find(self.tree(), segments)`, written out: every call comes through here.
        node: Node | None = self._slice.latest() or EMPTY_TREE
        for name in segments:
            if type(node) is not FileTree:
                return None
            children = node.children
            node = children.get(name) if type(children) is dict else maps.get(children, name)
        return node

    def _entries(self, segments: Segments) -> Iterable[tuple[str, Node]]:
        children = cast(FileTree, self._find(segments)).children
        return children.items() if type(children) is dict else maps.items(children)

    def _content(self, path: str, leaf: Leaf) -> bytes:
        return content_of(leaf)

    def _totals(self, segments: Segments) -> tuple[int, int, int]:
        tree = cast(FileTree, self._find(segments))
        return tree.total_size, tree.file_count, tree.directory_count

    def _height(self, segments: Segments) -> int:
        return height(cast(FileTree, self._find(segments)))

    def _commit(self, event: Event) -> None:
        cast(Session, self._session).dispatch(event)

    def _now(self) -> int:
        return self._session.now() if isinstance(self._session, Session) else 0

    def _told(self) -> None:
        if isinstance(self._session, Session):
            self._session.tell()

    def _exclusive(self) -> AbstractContextManager[object]:
        return self._session.lock if isinstance(self._session, Session) else nullcontext()
