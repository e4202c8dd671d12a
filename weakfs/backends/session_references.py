"""References from a session: the contents and snapshots in a store that it still needs."""

from __future__ import annotations

from collections.abc import Iterator

from weakfs.filesystem import FilesystemSnapshot
from weakfs.reducers.codec.tree_pool import TreePool
from weakfs.reducers.external_trees import external_trees
from weakfs.reducers.tree.node import FileTree
from weakfs.session import Session
from weakfs.session.blobs.blob import Stored


def contents_needed(session: Session, source: object) -> set[bytes]:
    """Return the digests of all contents that a session's records and slices read from `source`. O(distinct trees)."""
    pool, seen = TreePool(), dict[int, object]()
    blobs = (blob for tree in _trees(session) for blob in pool.contents(tree, seen))
    return {blob.digest for blob in blobs if type(blob) is Stored and blob.source is source}


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
    for known in external_trees(session).trees.values():
        yield known.tree
        yield known.found
    yield session[FileTree].latest() or FileTree()
