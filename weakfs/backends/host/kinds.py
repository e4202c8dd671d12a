"""How the snapshots of a host directory are kept: as a tree in the store, as git commits, or as tar archives."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal, get_args

from weakfs.backends.host.root import HostRoot
from weakfs.filesystem import FilesystemSnapshot, Limits
from weakfs.reducers import ExternalFsSnapshot, FileTree

SnapshotKind = Literal["tree", "git", "tar"]


class Kinds:
    """Takes snapshots of one kind, and reads those of every kind."""

    __slots__ = ("_root", "kind")

    def __init__(self, root: HostRoot, kind: SnapshotKind) -> None:
        if kind not in get_args(SnapshotKind):
            raise ValueError(f"cannot keep snapshots as {kind!r}; use 'tree', 'git' or 'tar'")
        self.kind: SnapshotKind = kind
        self._root = root

    def take(
        self, tag: str | None, next_id: Callable[[], str], filesystem_id: str, at: int
    ) -> tuple[FilesystemSnapshot, ExternalFsSnapshot]:
        """Keep the files as they are: what the caller gets, and what the session writes down."""
        store = self._root.store
        snapshot_id = next_id()
        while os.path.lexists(store.catalogue.path_of(snapshot_id)):
            # Of a session that had the same id.
            snapshot_id = next_id()
        with store.writer() as writer:
            seen = self._root.look_into(writer)
            stored = writer.commit(seen, snapshot_id=snapshot_id, created_at=at, tag=tag)
        path = self._root.path
        taken = ExternalFsSnapshot(snapshot_id, filesystem_id, at, self.kind, stored.ref, path, None, tag)
        return FilesystemSnapshot(
            snapshot_id, filesystem_id, at, self.kind, stored.ref, path, tag, None, seen.tree
        ), taken

    def tree_of(self, snapshot: FilesystemSnapshot, limits: Limits) -> FileTree:
        """Give the files of a snapshot; contents are read when somebody asks."""
        if snapshot.tree is not None:
            return snapshot.tree
        return self._root.store.tree(bytes.fromhex(snapshot.ref))
