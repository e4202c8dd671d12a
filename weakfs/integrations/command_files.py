"""What adapters that run commands share: files that commands see at the same paths, and what a command printed."""

from __future__ import annotations

from weakfs.backends import ContainerFilesystem, MountedFilesystem
from weakfs.filesystem import Filesystem
from weakfs.tools import ToolContext
from weakfs.tools.blobs import BlobReference


def mounted_files(files: Filesystem, mounted_at: str) -> Filesystem:
    """Return files whose paths are those that commands see: below `mounted_at`, or in a container its own."""
    if isinstance(files, MountedFilesystem):
        return files
    if isinstance(files, ContainerFilesystem):
        return files if files.root == "/" else MountedFilesystem(files, files.root)
    return MountedFilesystem(files, mounted_at)


def printed_text(output: str | BlobReference | None, context: ToolContext) -> str | None:
    """Return what a command printed; `None` if a capability keeps that much out of answers."""
    if not isinstance(output, BlobReference):
        return output or ""
    if context.capability is None or context.capability.max_inline_bytes is None:
        return context.blobs.get(output.digest).decode("utf-8", "replace")
    return None
