"""Snapshots of kind tar: one archive in the store, and an index with the offset of each blob in it."""

from __future__ import annotations

from weakfs.reducers.tree.leaf import Leaf, blob_digest, size_of
from weakfs.reducers.tree.node import FileTree
from weakfs.session.blobs.blob import ContentSource, Stored
from weakfs.snapshots.archive.archived_blob import Archived, index_of
from weakfs.snapshots.archive.tar import packed, packed_size
from weakfs.snapshots.scan.stat_cache import Scan
from weakfs.snapshots.store.catalogue import StoredSnapshot, root_name
from weakfs.snapshots.store.snapshot_writer import StoreWriter


def commit_archive(
    writer: StoreWriter, scan: Scan, *, snapshot_id: str, created_ns: int, tag: str | None, root_path: str
) -> tuple[StoredSnapshot, Stored]:
    """Commit a scan as a snapshot of kind tar: its catalogue entry and the archive.

    No snapshot refers to the separate contents that the scan put into the store, so a compaction removes them. Raises
    what `StoreWriter.commit` raises.
    """
    # The archive reads the contents back from the store.
    writer.finish()
    archive, index = _add_archive(writer, scan.tree)
    stored = writer.commit(
        scan,
        snapshot_id=snapshot_id,
        created_ns=created_ns,
        tag=tag,
        kind="tar",
        contents=(archive.digest, index.digest),
        extra={
            "archive": archive.digest.hex(),
            "archive_size": str(archive.size),
            "index": index.digest.hex(),
            "root": root_name(root_path),
        },
    )
    return stored, archive


def _add_archive(writer: StoreWriter, tree: FileTree) -> tuple[Stored, Stored]:
    rows: list[tuple[bytes, int, int]] = []

    def note(leaf: Leaf, offset: int) -> None:
        rows.append((blob_digest(leaf), offset, size_of(leaf)))

    archive = writer.add_pieces(packed_size(tree), packed(tree, note))
    return archive, writer.add(index_of(rows))


def archive_of(snapshot: StoredSnapshot, source: ContentSource) -> Archived:
    """Return the contents in a snapshot's archive, which is read from `source`."""
    data = Stored(bytes.fromhex(snapshot.extra["archive"]), int(snapshot.extra["archive_size"]), source)
    return Archived(data).with_index(source.read(bytes.fromhex(snapshot.extra["index"])))
