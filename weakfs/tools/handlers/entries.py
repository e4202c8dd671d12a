"""`rm`, `mkdir`, `mv` and `cp`."""

from __future__ import annotations

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.filesystem import Filesystem
from weakfs.messages import plural
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.tool import Tool


@frozen
class RmParams:
    """The parameters of `rm`."""

    path: str = field(metadata=param("the file or directory"))
    recursive: bool = field(default=False, metadata=param("remove a directory with everything in it"))


@frozen(kw_only=True)
class RmReceipt(Receipt):
    """The path that was removed, and the number of removed entries, including itself."""

    path: str | None = None
    removed: int | None = None


def rm_handler(params: RmParams, *, context: ToolContext) -> ToolResult[RmReceipt]:
    """Remove a file, a link or a directory."""
    fs = require_filesystem(context)
    path = _path_of(fs, params.path)
    removed = fs.delete(params.path, recursive=params.recursive)
    summary = f"Removed {path}" + (f" ({plural(removed, 'entry')})" if removed > 1 else "")
    return answer(RmReceipt(path=path, removed=removed, summary_text=summarize(summary)))


@frozen
class MkdirParams:
    """The parameters of `mkdir`."""

    path: str = field(metadata=param("the directory to create"))
    parents: bool = field(default=True, metadata=param("create missing parents"))
    exist_ok: bool = field(default=True, metadata=param("succeed if it already exists"))


@frozen(kw_only=True)
class MkdirReceipt(Receipt):
    """The directory, and whether it is new."""

    path: str | None = None
    created: bool | None = None


def mkdir_handler(params: MkdirParams, *, context: ToolContext) -> ToolResult[MkdirReceipt]:
    """Create a directory."""
    fs = require_filesystem(context)
    created = not fs.exists(params.path)
    fs.mkdir(params.path, parents=params.parents, exist_ok=params.exist_ok)
    path = fs.stat(params.path).path
    summary = f"Created {path}" if created else f"{path} already exists"
    return answer(MkdirReceipt(path=path, created=created, summary_text=summarize(summary)))


@frozen
class TransferParams:
    """The parameters of `mv` and `cp`."""

    source: str = field(metadata=param("the file or directory"))
    destination: str = field(metadata=param("its new path, not the directory to put it in"))


@frozen(kw_only=True)
class TransferReceipt(Receipt):
    """The old path and the new one; `replaced` is true if a file at the new path was replaced."""

    source: str | None = None
    destination: str | None = None
    replaced: bool | None = None


def mv_handler(params: TransferParams, *, context: ToolContext) -> ToolResult[TransferReceipt]:
    """Move or rename an entry; a file at the destination is replaced."""
    fs = require_filesystem(context)
    source, existed = _path_of(fs, params.source), fs.exists(params.destination)
    fs.move(params.source, params.destination)
    return _transferred("Moved", source, fs.stat(params.destination).path, existed)


def cp_handler(params: TransferParams, *, context: ToolContext) -> ToolResult[TransferReceipt]:
    """Copy an entry, including everything in a directory; a file at the destination is replaced."""
    fs = require_filesystem(context)
    source, existed = _path_of(fs, params.source), fs.exists(params.destination)
    fs.copy(params.source, params.destination)
    return _transferred("Copied", source, fs.stat(params.destination).path, existed)


def _path_of(fs: Filesystem, path: str) -> str:
    """Return the canonical path of an entry; a missing one is returned unchanged, and the change raises the error."""
    return fs.stat(path).path if fs.exists(path) else path


def _transferred(verb: str, source: str, destination: str, existed: bool) -> ToolResult[TransferReceipt]:
    if source == destination:
        summary, replaced = f"{source} is already there", False
    else:
        replaced = existed
        summary = f"{verb} {source} to {destination}" + (", replacing the file there" if replaced else "")
    return answer(
        TransferReceipt(source=source, destination=destination, replaced=replaced, summary_text=summarize(summary))
    )


TOOLS = (
    Tool(
        "rm",
        "Remove a file or a directory. To remove a directory that is not empty, set recursive.",
        RmParams,
        rm_handler,
        aliases={"file_path": "path"},
        receipt=RmReceipt,
        operation="write",
        is_quick=True,
    ),
    Tool(
        "mkdir",
        "Create a directory, with missing parents.",
        MkdirParams,
        mkdir_handler,
        receipt=MkdirReceipt,
        operation="write",
        is_quick=True,
    ),
    Tool(
        "mv",
        "Move or rename a file or directory; an existing file at the destination is replaced.",
        TransferParams,
        mv_handler,
        aliases={"src": "source", "dst": "destination"},
        receipt=TransferReceipt,
        operation="write",
        is_quick=True,
    ),
    Tool(
        "cp",
        "Copy a file, or a directory with everything in it; an existing file at the destination is replaced.",
        TransferParams,
        cp_handler,
        aliases={"src": "source", "dst": "destination"},
        receipt=TransferReceipt,
        operation="write",
        is_quick=True,
    ),
)
