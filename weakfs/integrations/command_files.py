"""Shared code of integrations that run commands: their files and options, printed output, and timeouts."""

from __future__ import annotations

from weakfs.backends import ContainerFilesystem, MountedFilesystem
from weakfs.filesystem import Filesystem
from weakfs.tools import ToolContext
from weakfs.tools.blobs import BlobReference
from weakfs.tools.handlers import ShellOptions

# The maximum size of a command's output, by default.
MAX_OUTPUT = 1 << 20
# The exit code of GNU `timeout` for a command that timed out.
TIMED_OUT = 124
# The error codes of commands that timed out.
TIMEOUTS = frozenset({"timed_out", "deadline_exceeded"})


def shell_options(given: ShellOptions | None) -> ShellOptions:
    """Return the options for commands, or the default ones of integrations."""
    return ShellOptions(max_output=MAX_OUTPUT) if given is None else given


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
