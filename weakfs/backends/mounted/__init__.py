"""Files under a root other than `/`, so that their paths are the same for tools and for commands."""

from weakfs.backends.mounted.filesystem import MountedFilesystem
from weakfs.backends.mounted.mount_point import MountPoint

__all__ = ["MountPoint", "MountedFilesystem"]
