"""Trees from outside and back: scanning a host directory, archives."""

from weakfs.snapshots.archive import pack, unpack
from weakfs.snapshots.scan import Scan, Selection, scan

__all__ = ["Scan", "Selection", "pack", "scan", "unpack"]
