"""The host backend: files in a host directory."""

from weakfs.backends.host.filesystem import HostFilesystem

__all__ = ["HostFilesystem"]
