"""Compaction of a store: finding the contents that its snapshots need, and removing all others."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Sequence

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.session import MissingBlob
from weakfs.session.blobs.blob import verified_pieces
from weakfs.session.files.atomic_write import sync_folder
from weakfs.snapshots.errors import StoreDamaged, unwritable
from weakfs.snapshots.scan import manifests
from weakfs.snapshots.store import atomic_files as disk
from weakfs.snapshots.store.catalogue import StoredSnapshot
from weakfs.snapshots.store.pack_index import Pack, PackIndex
from weakfs.snapshots.store.packs import PackWriter

ReadManifest = Callable[[bytes], bytes]

# Packs smaller than this are merged; larger ones are not touched as long as most of their contents are needed.
SMALL_PACK = 64 << 20


@frozen
class CompactReport:
    """The number and total size of packs before and after a compaction."""

    bytes_before: int
    bytes_after: int
    packs_before: int
    packs_after: int


@define
class Needs:
    """The manifests and contents that must be kept."""

    directories: set[bytes] = field(factory=set)
    contents: set[bytes] = field(factory=set)

    def add_tree(self, ref: bytes, read_manifest: ReadManifest, seen: set[bytes], *, with_contents: bool) -> None:
        """Add a directory with everything below it, except directories already seen."""
        waiting = [ref]
        while waiting:
            digest = waiting.pop()
            if digest in seen:
                continue
            seen.add(digest)
            self.directories.add(digest)
            for is_directory, below in manifests.children(read_manifest(digest)):
                if is_directory:
                    waiting.append(below)
                elif with_contents:
                    self.contents.add(below)


def needs_of(snapshots: Iterable[StoredSnapshot], read_manifest: ReadManifest) -> Needs:
    """Return the manifests and contents that the snapshots need. O(distinct manifests)."""
    needs = Needs()
    seen: dict[bool, set[bytes]] = {True: set(), False: set()}
    for snapshot in snapshots:
        has_contents = snapshot.kind == "tree"
        needs.contents.update(map(bytes.fromhex, snapshot.contents))
        try:
            needs.add_tree(bytes.fromhex(snapshot.ref), read_manifest, seen[has_contents], with_contents=has_contents)
        except (MissingBlob, StoreDamaged) as error:
            raise StoreDamaged(
                f"cannot compact the store: snapshot {snapshot.snapshot_id!r} is incomplete ({error}); drop it first"
            ) from error
    return needs


class Compaction:
    """One compaction of a store that no other process is writing to."""

    def __init__(self, index: PackIndex, needs: Needs) -> None:
        self.index = index
        self.needs = needs

    def run(self, before_removing: Callable[[], object]) -> CompactReport:
        """Rewrite packs with waste, and small packs, into one pack without the waste; then remove the old ones."""
        packs = self.index.packs()
        before = {pack.path: os.stat(pack.path).st_size for pack in packs}
        wanted = self.needs.directories | self.needs.contents
        seen: set[bytes] = set()
        rewritten, has_waste = [], False
        number_of_small = sum(size < SMALL_PACK for size in before.values())
        for pack in packs:
            waste = sum(row[0] not in wanted for row in pack.rows)
            copies = sum(row[0] in seen for row in pack.rows)
            has_waste = has_waste or waste > 0
            if waste or copies or (number_of_small > 1 and before[pack.path] < SMALL_PACK):
                rewritten.append(pack)
            else:
                seen.update(row[0] for row in pack.rows)
        wanted -= seen
        made = self._rewrite(rewritten, wanted) if rewritten else None
        if has_waste:
            before_removing()
        for pack in rewritten:
            if pack.path != made:
                disk.remove(pack.path)
        if rewritten:
            sync_folder(self.index.folder)
        self.index.refresh()
        after = [os.stat(pack.path).st_size for pack in self.index.packs()]
        return CompactReport(sum(before.values()), sum(after), len(before), len(after))

    def _rewrite(self, packs: Sequence[Pack], wanted: set[bytes]) -> str | None:
        writer = PackWriter(self.index.folder)
        try:
            for pack in packs:
                for digest, _, length in sorted(pack.rows, key=lambda row: row[1]):
                    if digest in wanted and digest not in writer.places:
                        self._copy(digest, length, writer)
            return writer.finish()
        except OSError as error:
            raise unwritable(
                error.errno or errno.EIO,
                f"cannot compact the store in {self.index.folder!r}: {error.strerror}; remove the cause and compact "
                f"again; nothing was removed",
            ) from error
        finally:
            writer.abandon()

    def _copy(self, digest: bytes, length: int, writer: PackWriter) -> None:
        if digest in self.needs.directories:
            writer.add(digest, self.index.read_manifest(digest))
            return

        def copy(append: Callable[[bytes], None]) -> bytes:
            for piece in verified_pieces(digest, length, self.index.read_pieces(digest), damaged):
                append(piece)
            return digest

        def damaged() -> StoreDamaged:
            return StoreDamaged(
                f"cannot compact the store: {self.index.path_of(digest)!r} is damaged at the content "
                f"{digest.hex()}; restore the file from a copy, or drop the snapshots that need it"
            )

        writer.add_pieces(copy, lambda found: False)
