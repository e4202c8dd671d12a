"""How the snapshots of a host directory are kept: as a tree in the store, as git commits, or as tar archives."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal, get_args

from weakfs.backends.host.root import HostRoot
from weakfs.filesystem import FilesystemSnapshot, Limits
from weakfs.reducers import ExternalFsSnapshot, FileTree
from weakfs.snapshots.git.sink import Base

SnapshotKind = Literal["tree", "git", "tar"]

# How often another session may take the very id that was to be ours.
ATTEMPTS = 100


class Kinds:
    """Takes snapshots of one kind, and reads those of every kind."""

    __slots__ = ("_base", "_root", "kind")

    def __init__(self, root: HostRoot, kind: SnapshotKind) -> None:
        if kind not in get_args(SnapshotKind):
            raise ValueError(f"cannot keep snapshots as {kind!r}; use 'tree', 'git' or 'tar'")
        self.kind: SnapshotKind = kind
        self._root = root
        # What the last commit was, for the next to be told as a difference.
        self._base: Base | None = None

    def take(
        self, tag: str | None, next_id: Callable[[], str], filesystem_id: str, at: int
    ) -> tuple[FilesystemSnapshot, ExternalFsSnapshot]:
        """Keep the files as they are: what the caller gets, and what the session writes down.

        `GitUnavailable` where git is needed and is not there.
        """
        takes = {"tree": self._take_tree, "git": self._take_git, "tar": self._take_tar}
        for attempt in range(1, ATTEMPTS + 1):
            snapshot_id = next_id()
            # It may be of a session that had the same id.
            if os.path.lexists(self._root.store.catalogue.path_of(snapshot_id)):
                continue
            try:
                taken = takes[self.kind](snapshot_id, tag, filesystem_id, at)
            except FileExistsError:
                if attempt == ATTEMPTS:
                    raise
                continue
            return taken, recorded(taken)
        raise AssertionError("the last attempt returns or raises")

    def _take_tree(self, snapshot_id: str, tag: str | None, filesystem_id: str, at: int) -> FilesystemSnapshot:
        with self._root.store.writer() as writer:
            seen = self._root.look_into(writer)
            stored = writer.commit(seen, snapshot_id=snapshot_id, created_at=at, tag=tag)
        path = self._root.path
        return FilesystemSnapshot(snapshot_id, filesystem_id, at, "tree", stored.ref, path, tag, None, seen.tree)

    def _take_git(self, snapshot_id: str, tag: str | None, filesystem_id: str, at: int) -> FilesystemSnapshot:
        store, path = self._root.store, self._root.path
        with store.git_writer() as sink:
            seen = self._root.look_into(sink)
            stored, self._base = sink.commit(
                seen, snapshot_id=snapshot_id, created_at=at, tag=tag, root_path=path, base=self._base
            )
        commit = stored.extra["commit"]
        return FilesystemSnapshot(snapshot_id, filesystem_id, at, "git", commit, path, tag, store.git.path, seen.tree)

    def _take_tar(self, snapshot_id: str, tag: str | None, filesystem_id: str, at: int) -> FilesystemSnapshot:
        raise NotImplementedError

    def tree_of(self, snapshot: FilesystemSnapshot, limits: Limits) -> FileTree:
        """Give the files of a snapshot; contents are read when somebody asks."""
        if snapshot.tree is not None:
            return snapshot.tree
        store = self._root.store
        return store.tree(store.get(snapshot.snapshot_id))


def recorded(snapshot: FilesystemSnapshot) -> ExternalFsSnapshot:
    """Give what a session writes down of a snapshot."""
    return ExternalFsSnapshot(
        snapshot.snapshot_id,
        snapshot.filesystem_id,
        snapshot.created_at,
        snapshot.kind,
        snapshot.ref,
        snapshot.root_path,
        snapshot.git_dir,
        snapshot.tag,
    )
