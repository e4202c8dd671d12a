"""Snapshots of trees outside the session: directory scans, the content store, the undo journal, archives, git."""

from weakfs.snapshots.accounts import SnapshotAccount
from weakfs.snapshots.archive.tar import from_tar, to_tar
from weakfs.snapshots.errors import StoreDamaged, StoreUnwritable
from weakfs.snapshots.scan.host_import import ImportedTree, Selection, import_tree
from weakfs.snapshots.scan.scan import scan, scan_entry
from weakfs.snapshots.scan.scan_limits import ScanLimits, UnwantedContents
from weakfs.snapshots.scan.sinks import HashOnlySink, InMemorySink, Sink, StatToken
from weakfs.snapshots.scan.stat_cache import Scan
from weakfs.snapshots.snapshot_store import Store
from weakfs.snapshots.store.catalogue import StoredSnapshot
from weakfs.snapshots.store.compaction import CompactReport
from weakfs.snapshots.store.snapshot_writer import StoreWriter
from weakfs.snapshots.store.store_sink import StoreSink

__all__ = [
    "CompactReport",
    "HashOnlySink",
    "ImportedTree",
    "InMemorySink",
    "Scan",
    "ScanLimits",
    "Selection",
    "Sink",
    "SnapshotAccount",
    "StatToken",
    "Store",
    "StoreDamaged",
    "StoreSink",
    "StoreUnwritable",
    "StoreWriter",
    "StoredSnapshot",
    "UnwantedContents",
    "from_tar",
    "import_tree",
    "scan",
    "scan_entry",
    "to_tar",
]
