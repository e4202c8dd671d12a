"""Kinds of snapshots of a host directory: a tree in the store, a git commit, or a tar archive."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal

import attrs

from weakfs.backends.host.root import HostRoot
from weakfs.filesystem import FilesystemSnapshot, Limits
from weakfs.reducers import ExternalFsSnapshot, FileTree
from weakfs.reducers.tree.leaf import CONTENT, DEVICE, SOCKET
from weakfs.reducers.tree.node import find, put, walk
from weakfs.session import UnknownSnapshot
from weakfs.snapshots.archive.archive_snapshot import commit_archive
from weakfs.snapshots.archive.archived_blob import Archived
from weakfs.snapshots.archive.tar import unpack_in_place
from weakfs.snapshots.store.catalogue import root_name

SnapshotKind = Literal["tree", "git", "tar"]

# Takes a snapshot, given its id, its tag, the id of the filesystem and the time.
Take = Callable[[str, str | None, str, int], FilesystemSnapshot]

UNLIMITED = Limits(max_file_size=None, max_path_depth=None, max_segment_length=None)

# The maximum number of attempts, in case another session takes the id first.
ATTEMPTS = 100


class Kinds:
    """Takes snapshots of one kind, and reads snapshots of every kind."""

    __slots__ = ("_root", "kind")

    def __init__(self, root: HostRoot, kind: str) -> None:
        takes = self._takes()
        if kind not in takes:
            *most, last = map(repr, takes)
            raise ValueError(f"cannot keep snapshots as {kind!r}; use {', '.join(most)} or {last}")
        self.kind = kind
        self._root = root

    def _takes(self) -> dict[str, Take]:
        """Return the kinds of snapshots, each with the function that takes one."""
        return {"tree": self._take_tree, "git": self._take_git, "tar": self._take_tar}

    def take(
        self, tag: str | None, next_id: Callable[[], str], filesystem_id: str, at: int
    ) -> tuple[FilesystemSnapshot, ExternalFsSnapshot]:
        """Take a snapshot. Return it, and the tree that the session records.

        Raises `GitUnavailable` if git is needed and missing.
        """
        take = self._takes()[self.kind]
        for attempt in range(1, ATTEMPTS + 1):
            snapshot_id = next_id()
            # Sessions with the same id, such as copies of one saved session, count from the same number.
            while os.path.lexists(self._root.store.catalogue.path_of(snapshot_id)):
                snapshot_id = next_id()
            try:
                taken = take(snapshot_id, tag, filesystem_id, at)
            except FileExistsError:
                if attempt == ATTEMPTS:
                    raise
                continue
            return taken, recorded(taken)
        raise AssertionError("the last attempt returns or raises")

    def _take_tree(self, snapshot_id: str, tag: str | None, filesystem_id: str, at: int) -> FilesystemSnapshot:
        path = self._root.path
        with self._root.store.writer() as writer:
            seen = self._root.scan_into(writer)
            about = {"root": root_name(path)}
            stored = writer.commit(seen, snapshot_id=snapshot_id, created_ns=at, tag=tag, extra=about)
        return FilesystemSnapshot(snapshot_id, filesystem_id, at, "tree", stored.ref, path, tag, None, seen.tree)

    def _take_git(self, snapshot_id: str, tag: str | None, filesystem_id: str, at: int) -> FilesystemSnapshot:
        root, store, path = self._root, self._root.store, self._root.path
        with store.git_writer() as sink:
            seen = root.scan_into(sink)
            stored, root.base = sink.commit(
                seen, snapshot_id=snapshot_id, created_ns=at, tag=tag, root_path=path, base=root.base
            )
        commit = stored.extra["commit"]
        return FilesystemSnapshot(snapshot_id, filesystem_id, at, "git", commit, path, tag, store.git.path, seen.tree)

    def _take_tar(self, snapshot_id: str, tag: str | None, filesystem_id: str, at: int) -> FilesystemSnapshot:
        path = self._root.path
        with self._root.store.writer() as writer:
            seen = self._root.scan_into(writer)
            stored, archive = commit_archive(
                writer, seen, snapshot_id=snapshot_id, created_ns=at, tag=tag, root_path=path
            )
        ref = stored.extra["archive"]
        return FilesystemSnapshot(snapshot_id, filesystem_id, at, "tar", ref, path, tag, None, None, archive)

    def with_own_tree(self, snapshot: FilesystemSnapshot) -> FilesystemSnapshot:
        """Return a snapshot with the store's tree of it, if that is the same snapshot."""
        try:
            stored = self._root.store.get(snapshot.snapshot_id)
        except UnknownSnapshot:
            return snapshot
        if snapshot.ref not in (stored.ref, *stored.extra.values()):
            return snapshot
        return attrs.evolve(snapshot, tree=self._root.store.tree(stored))

    def tree_of(self, snapshot: FilesystemSnapshot, limits: Limits, *, is_own: bool) -> FileTree:
        """Return the files of a snapshot; contents are read on demand.

        `limits` apply to the archive of another filesystem (if `is_own` is false). An archive cannot hold sockets and
        devices. The store in which the snapshot was taken knows them; with any other store, those that exist now are
        kept.
        """
        if snapshot.tree is not None:
            return snapshot.tree
        store = self._root.store
        try:
            stored = store.get(snapshot.snapshot_id)
        except UnknownSnapshot:
            if snapshot.data is None:
                raise
        else:
            if snapshot.ref in (stored.ref, *stored.extra.values()):
                return store.tree(stored)
        if snapshot.data is None:
            raise UnknownSnapshot(
                f"cannot read snapshot {snapshot.snapshot_id!r}: the store {store.path!r} has a different one with "
                f"that id; open the filesystem with the store in which it was taken"
            )
        archived = Archived(snapshot.data)
        tree = unpack_in_place(archived, limits=UNLIMITED if is_own else limits, at=snapshot.created_ns)
        return with_unarchived(tree, self._root.scan())


def with_unarchived(wanted: FileTree, now: FileTree) -> FileTree:
    """Return a tree with the sockets and devices of another added, under unused names in existing directories."""
    for path, node in walk(now):
        if type(node) is FileTree or node[CONTENT] not in (SOCKET, DEVICE):
            continue
        segments = tuple(path[1:].split("/"))
        parent = find(wanted, segments[:-1])
        if type(parent) is FileTree and find(wanted, segments) is None:
            wanted = put(wanted, segments, node, parent.modified_at)
    return wanted


def recorded(snapshot: FilesystemSnapshot) -> ExternalFsSnapshot:
    """Return a snapshot in the form that a session records."""
    return ExternalFsSnapshot(
        snapshot.snapshot_id,
        snapshot.filesystem_id,
        snapshot.created_ns,
        snapshot.kind,
        snapshot.ref,
        snapshot.root_path,
        snapshot.git_dir,
        snapshot.tag,
        snapshot.data,
    )
