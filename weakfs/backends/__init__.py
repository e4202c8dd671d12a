"""Where files can live: one class a place, all with the same answers."""

from weakfs.backends.host import HostFilesystem
from weakfs.backends.memory import InMemoryFilesystem
from weakfs.backends.mock import Call, MockFilesystem, UnansweredCallError
from weakfs.backends.mount import HostMount
from weakfs.backends.overlay.filesystem import OverlayFilesystem

__all__ = [
    "Call",
    "HostFilesystem",
    "HostMount",
    "InMemoryFilesystem",
    "MockFilesystem",
    "OverlayFilesystem",
    "UnansweredCallError",
]
