"""Filesystem backends: one class per place where files can be stored, all with the same behaviour."""

from weakfs.backends.container import ContainerFilesystem, Podman
from weakfs.backends.host import HostFilesystem
from weakfs.backends.host_mount import HostMount
from weakfs.backends.memory import InMemoryFilesystem
from weakfs.backends.mock import Call, MockFilesystem, UnansweredCallError
from weakfs.backends.overlay.filesystem import OverlayFilesystem
from weakfs.backends.storage import StorageFilesystem

__all__ = [
    "Call",
    "ContainerFilesystem",
    "HostFilesystem",
    "HostMount",
    "InMemoryFilesystem",
    "MockFilesystem",
    "OverlayFilesystem",
    "Podman",
    "StorageFilesystem",
    "UnansweredCallError",
]
