"""Trees from outside and back: surveys of a host directory, the store of their contents, scans, archives."""

from weakfs.snapshots.archive import pack, unpack
from weakfs.snapshots.catalogue import StoredSnapshot
from weakfs.snapshots.errors import StoreDamaged, StoreUnwritable
from weakfs.snapshots.scan import Scan, Selection, scan
from weakfs.snapshots.seen import Survey
from weakfs.snapshots.sinks import HashOnly, InMemory, Sink
from weakfs.snapshots.store import Store
from weakfs.snapshots.survey import survey, survey_entry
from weakfs.snapshots.writer import StoreWriter

__all__ = [
    "HashOnly",
    "InMemory",
    "Scan",
    "Selection",
    "Sink",
    "Store",
    "StoreDamaged",
    "StoreUnwritable",
    "StoreWriter",
    "StoredSnapshot",
    "Survey",
    "pack",
    "scan",
    "survey",
    "survey_entry",
    "unpack",
]
