"""Shared code of integrations that run commands: files with the same paths in commands, and printed output."""

from __future__ import annotations

from weakfs.backends import ContainerFilesystem, MountedFilesystem
from weakfs.filesystem import Filesystem
from weakfs.tools import ToolContext
from weakfs.tools.blobs import BlobReference


def mounted_files(files: Filesystem, mounted_at: str) -> Filesystem:
    """Return the files with the paths that commands see: below `mounted_at`, or a container's own paths."""
    if isinstance(files, MountedFilesystem):
        return files
    if isinstance(files, ContainerFilesystem):
        return files if files.root == "/" else MountedFilesystem(files, files.root)
    return MountedFilesystem(files, mounted_at)


def printed_text(output: str | BlobReference | None, context: ToolContext) -> str | None:
    """Return the output of a command; `None` if it is more than a capability allows in an answer."""
    if not isinstance(output, BlobReference):
        return output or ""
    if context.capability is None or context.capability.max_inline_bytes is None:
        return context.blobs.get(output.digest).decode("utf-8", "replace")
    return None
