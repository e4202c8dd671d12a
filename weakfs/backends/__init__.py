"""Filesystem backends: one class per place where files can be stored, all with the same behavior.

Names are imported from their modules when they are first used: files in memory need only a third of the modules.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
    from weakfs.backends.container import ContainerFilesystem, Podman
    from weakfs.backends.host import HostFilesystem
    from weakfs.backends.host_mount import HostMount
    from weakfs.backends.memory import InMemoryFilesystem
    from weakfs.backends.mock import Call, MockFilesystem, UnansweredCallError
    from weakfs.backends.mounted import MountedFilesystem
    from weakfs.backends.overlay.filesystem import OverlayFilesystem
    from weakfs.backends.storage import StorageFilesystem

__all__ = [
    "Call",
    "ContainerFilesystem",
    "HostFilesystem",
    "HostMount",
    "InMemoryFilesystem",
    "MockFilesystem",
    "MountedFilesystem",
    "OverlayFilesystem",
    "Podman",
    "StorageFilesystem",
    "UnansweredCallError",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "container": "ContainerFilesystem Podman",
        "host": "HostFilesystem",
        "host_mount": "HostMount",
        "memory": "InMemoryFilesystem",
        "mock": "Call MockFilesystem UnansweredCallError",
        "mounted": "MountedFilesystem",
        "overlay.filesystem": "OverlayFilesystem",
        "storage": "StorageFilesystem",
    },
)
