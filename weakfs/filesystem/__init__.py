"""The public filesystem API: protocol, results, paths, limits, and operations derived from a few primitives.

Names are imported from their modules when they are first used: a new process uses few of them.
"""

from typing import TYPE_CHECKING

from weakfs.lazy_names import lazy_names

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "base": "BaseFilesystem",
        "checkout": "Checkout ReadBack SupportsCheckout",
        "limits": "Limits",
        "paths": "normalize",
        "primitives": "FilesystemPrimitives SymlinkPolicy",
        "protocol": "Filesystem",
        "results": (
            "FileEntry FileStat FilesystemSnapshot GlobMatch GlobResult GrepMatch GrepResult Note ReadBytesResult "
            "ReadResult RestoreReport Statistics WriteMode WriteResult"
        ),
    },
)
