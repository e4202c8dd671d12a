"""The public filesystem API: protocol, results, paths, limits, and operations derived from a few primitives."""

from weakfs.filesystem.base import BaseFilesystem
from weakfs.filesystem.checkout import Checkout, ReadBack, SupportsCheckout
from weakfs.filesystem.limits import Limits
from weakfs.filesystem.paths import normalize
from weakfs.filesystem.primitives import FilesystemPrimitives, SymlinkPolicy
from weakfs.filesystem.protocol import Filesystem
from weakfs.filesystem.results import (
    FileEntry,
    FileStat,
    FilesystemSnapshot,
    GlobMatch,
    GlobResult,
    GrepMatch,
    GrepResult,
    Note,
    ReadBytesResult,
    ReadResult,
    RestoreReport,
    Statistics,
    WriteMode,
    WriteResult,
)

__all__ = [
    "BaseFilesystem",
    "Checkout",
    "FileEntry",
    "FileStat",
    "Filesystem",
    "FilesystemPrimitives",
    "FilesystemSnapshot",
    "GlobMatch",
    "GlobResult",
    "GrepMatch",
    "GrepResult",
    "Limits",
    "Note",
    "ReadBack",
    "ReadBytesResult",
    "ReadResult",
    "RestoreReport",
    "Statistics",
    "SupportsCheckout",
    "SymlinkPolicy",
    "WriteMode",
    "WriteResult",
    "normalize",
]
