"""Retention: the contents and snapshots in a store that a session still needs."""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.filesystem import FilesystemSnapshot
from weakfs.reducers.external_trees import ExternalTrees
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.leaf import CONTENT
from weakfs.reducers.tree.node import FileTree
from weakfs.session import Session
from weakfs.session.blobs.blob import Stored


def contents_needed(session: Session, source: object) -> set[bytes]:
    """Return the digests of all contents that a session's records and slices read from `source`. O(distinct trees)."""
    needed: set[bytes] = set()
    # Visited directories by id; keeping references prevents their ids from being reused.
    seen: dict[int, FileTree] = {}
    for tree in _trees(session):
        stack = [tree]
        while stack:
            here = stack.pop()
            if id(here) in seen:
                continue
            seen[id(here)] = here
            for _, node in maps.items(here._children):
                if type(node) is FileTree:
                    stack.append(node)
                elif type(node[CONTENT]) is Stored and node[CONTENT].source is source:
                    needed.add(node[CONTENT].digest)
    return needed


def snapshots_needed(session: Session) -> set[str]:
    """Return the ids of the snapshots of external filesystems that a rollback of the session may need."""
    with session.lock:
        line = session._line()
        every = [entry.externals for entry in line.snapshots.values()] + [*line.externals.values()]
    return {kept.snapshot_id for each in every for _, kept in each if isinstance(kept, FilesystemSnapshot)}


def _trees(session: Session) -> Iterator[FileTree]:
    for record in session.records:
        tree = getattr(record.event, "tree", None)
        if type(tree) is FileTree:
            yield tree
    for known in (session[ExternalTrees].latest() or ExternalTrees()).trees.values():
        yield known.tree
        yield known.found
    yield session[FileTree].latest() or FileTree()
