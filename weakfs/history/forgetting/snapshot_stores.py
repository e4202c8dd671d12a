"""Forgetting in a snapshot store: the snapshots that contain the text are dropped, and the store is compacted.

They are not rewritten, because a snapshot restores a directory exactly or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from attrs import field

from weakfs.backends import HostFilesystem
from weakfs.backends.session_references import contents_needed
from weakfs.class_decorators import define
from weakfs.history.forgetting.search import is_in_bytes
from weakfs.history.forgetting.text_redaction import found_in
from weakfs.session import MissingBlob, Session
from weakfs.snapshots import Store, StoredSnapshot
from weakfs.snapshots.scan import manifests


def stores_of(given: Iterable[Store | HostFilesystem]) -> tuple[Store, ...]:
    """Return the stores, without repetitions."""
    every = (one if isinstance(one, Store) else one.store for one in given)
    return tuple({one.path: one for one in every}.values())


def snapshots_with(store: Store, forms: Sequence[bytes]) -> tuple[str, ...]:
    """Return the ids of the snapshots with any of the forms in contents, names, targets, tags or an archive."""
    search = _Search(store, tuple(forms))
    return tuple(one.snapshot_id for one in store.list() if search.is_in(one))


def drop(store: Store, snapshots: Iterable[str]) -> None:
    """Drop snapshots from a store."""
    store.drop_all(snapshots)


def compact(store: Store, session: Session) -> None:
    """Remove from a store what neither a snapshot nor the session needs."""
    if os.path.isdir(store.path):
        store.compact(keep=contents_needed(session, store))


@define(eq=False)
class _Search:
    """Searches the snapshots of a store. Each manifest and each blob is read once."""

    store: Store
    forms: tuple[bytes, ...]
    _known: dict[bytes, bool] = field(factory=dict[bytes, bool])

    def is_in(self, snapshot: StoredSnapshot) -> bool:
        with open(self.store.catalogue.path_of(snapshot.snapshot_id), "rb") as file:
            if found_in(file.read(), self.forms):
                return True
        waiting = [(True, bytes.fromhex(snapshot.ref))]
        waiting += [(False, bytes.fromhex(digest)) for digest in snapshot.contents]
        with_contents = snapshot.kind != "tar"
        seen: set[bytes] = set()
        while waiting:
            is_directory, digest = waiting.pop()
            if digest in seen:
                continue
            seen.add(digest)
            manifest = self.store.read_manifest(digest) if is_directory else b""
            if digest not in self._known:
                self._known[digest] = found_in(manifest, self.forms) if is_directory else self._is_in_content(digest)
            if self._known[digest]:
                return True
            if is_directory:
                waiting += [below for below in manifests.children(manifest) if below[0] or with_contents]
        return False

    def _is_in_content(self, digest: bytes) -> bool:
        try:
            content = self.store.read(digest)
        except MissingBlob:
            return False
        return is_in_bytes(content, self.forms)
