"""Usage: the current size of a store, and its size with only some of its snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attrs import field

from weakfs.class_decorators import define
from weakfs.snapshots.store.catalogue import StoredSnapshot
from weakfs.snapshots.store.compaction import Needs

if TYPE_CHECKING:
    from weakfs.snapshots.snapshot_store import Store


@define(eq=False)
class Usage:
    """The sizes of contents and manifests in a store, each counted once, without the index of the packs.

    An object in a repository is counted with its current size on disk, although git repacks the remaining objects.
    """

    store: Store
    keep: frozenset[bytes] = frozenset()
    _in_packs: dict[bytes, int] = field(init=False)
    _in_git: dict[bytes, int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        index = self.store._index
        index.refresh()
        self._in_packs = index.sizes()
        git = self.store.git
        self._in_git = dict(git.sizes(git.ids())) if git.is_there else {}

    @property
    def size(self) -> int:
        """The size of everything in the store."""
        return sum(self._in_packs.values()) + sum(self._in_git.values())

    def size_with(self, kept: Sequence[StoredSnapshot], dropped: Sequence[StoredSnapshot]) -> int:
        """Return the size after some snapshots are dropped and the store is compacted. O(distinct manifests)."""
        wanted = self.store._needs_with(kept, self.keep)
        size = sum(self._in_packs.get(digest, 0) for digest in wanted.directories | wanted.contents)
        gone = self._contents_in_git(dropped) - self._contents_in_git(kept) - self.keep
        return size + sum(taken for digest, taken in self._in_git.items() if digest not in gone)

    def _contents_in_git(self, snapshots: Iterable[StoredSnapshot]) -> set[bytes]:
        found, seen = Needs(), set[bytes]()
        for one in snapshots:
            if one.kind == "git":
                found.add_tree(bytes.fromhex(one.ref), self.store.read_manifest, seen, with_contents=True)
        return found.contents
