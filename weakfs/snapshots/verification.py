"""Verification of a store: reading everything that its snapshots need, to find what is damaged or missing."""

from __future__ import annotations

from typing import Protocol

from weakfs.reducers.tree.leaf import CONTENT
from weakfs.reducers.tree.node import FileTree, walk
from weakfs.session import MissingBlob
from weakfs.session.blobs.blob import ContentSource, Stored, checked_pieces
from weakfs.session.interruption import checked_between
from weakfs.snapshots.archive.archive_snapshot import archive_of
from weakfs.snapshots.errors import StoreDamaged
from weakfs.snapshots.store.catalogue import StoredSnapshot


class Verified(ContentSource, Protocol):
    """A store to verify."""

    def tree(self, snapshot: StoredSnapshot, /) -> FileTree:
        """Return the tree of a snapshot."""
        ...


class Verification:
    """Reads each blob of a store once, however many snapshots need it."""

    def __init__(self, store: Verified) -> None:
        self._store = store
        self._sound: set[bytes] = set()

    def damage(self, snapshot: StoredSnapshot) -> str | None:
        """Return what is damaged or missing in a snapshot; `None` if it can be restored."""
        try:
            tree = self._store.tree(snapshot)
            if snapshot.kind == "tar":
                # The contents of the snapshot are in its archive.
                archive_of(snapshot, self._store).check()
            for _, node in walk(tree):
                content = node[CONTENT] if type(node) is tuple else None
                if isinstance(content, Stored):
                    self._read(content)
        except (MissingBlob, StoreDamaged) as error:
            return str(error)
        return None

    def _read(self, content: Stored) -> None:
        is_shared = content.source is self._store
        if is_shared and content.digest in self._sound:
            return
        for _ in checked_between(checked_pieces(content)):
            pass
        if is_shared:
            self._sound.add(content.digest)
