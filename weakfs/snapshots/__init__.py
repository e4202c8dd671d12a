"""Snapshots of trees outside the session: directory scans, the content store, the undo journal, archives, git."""

from weakfs.snapshots.archive.tar import from_tar, to_tar
from weakfs.snapshots.scan.incremental_scan import survey, survey_entry
from weakfs.snapshots.scan.scan import Scan, Selection, scan
from weakfs.snapshots.scan.scan_limits import Bounds, Discarded
from weakfs.snapshots.scan.sinks import HashOnly, InMemory, Sink, StatToken
from weakfs.snapshots.scan.stat_cache import Survey
from weakfs.snapshots.scan.store_sink import Observer
from weakfs.snapshots.store.catalogue import StoredSnapshot
from weakfs.snapshots.store.compaction import CompactReport, SnapshotAccount
from weakfs.snapshots.store.errors import StoreDamaged, StoreUnwritable
from weakfs.snapshots.store.snapshot_writer import StoreWriter
from weakfs.snapshots.store.store import Store

__all__ = [
    "Bounds",
    "CompactReport",
    "Discarded",
    "HashOnly",
    "InMemory",
    "Observer",
    "Scan",
    "Selection",
    "Sink",
    "SnapshotAccount",
    "StatToken",
    "Store",
    "StoreDamaged",
    "StoreUnwritable",
    "StoreWriter",
    "StoredSnapshot",
    "Survey",
    "from_tar",
    "scan",
    "survey",
    "survey_entry",
    "to_tar",
]
