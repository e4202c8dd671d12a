"""The host backend: files in a directory of the host."""

from weakfs.backends.host.filesystem import HostFilesystem

__all__ = ["HostFilesystem"]
