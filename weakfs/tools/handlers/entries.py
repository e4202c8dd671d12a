"""Where things are: `rm`, `mkdir`, `mv` and `cp`."""

from __future__ import annotations

from attrs import field, frozen

from weakfs.messages import plural
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param


@frozen
class RmParams:
    """What `rm` takes."""

    path: str = field(metadata=param("the file or directory"))
    recursive: bool = field(default=False, metadata=param("whether a directory goes with all that is in it"))


@frozen(kw_only=True)
class RmReceipt(Receipt):
    """What was removed: the path, and how many entries went with it, itself among them."""

    path: str | None = None
    removed: int | None = None


def rm_handler(params: RmParams, *, context: ToolContext) -> ToolResult[RmReceipt]:
    """Remove a file, a link or a directory."""
    fs = require_filesystem(context)
    path = fs.stat(params.path).path
    removed = fs.delete(path, recursive=params.recursive)
    summary = f"Removed {path}" + (f" ({plural(removed, 'entry')})" if removed > 1 else "")
    return answer(RmReceipt(path=path, removed=removed, summary_text=summarize(summary)))


@frozen
class MkdirParams:
    """What `mkdir` takes."""

    path: str = field(metadata=param("the directory to make"))
    parents: bool = field(default=True, metadata=param("whether missing parents are made"))
    exist_ok: bool = field(default=True, metadata=param("whether it may be there already"))


@frozen(kw_only=True)
class MkdirReceipt(Receipt):
    """Which directory there is now, and whether it is new."""

    path: str | None = None
    created: bool | None = None


def mkdir_handler(params: MkdirParams, *, context: ToolContext) -> ToolResult[MkdirReceipt]:
    """Make a directory."""
    fs = require_filesystem(context)
    created = not fs.exists(params.path)
    fs.mkdir(params.path, parents=params.parents, exist_ok=params.exist_ok)
    path = fs.stat(params.path).path
    summary = f"Made {path}" if created else f"{path} was there already"
    return answer(MkdirReceipt(path=path, created=created, summary_text=summarize(summary)))


@frozen
class TransferParams:
    """What `mv` and `cp` take."""

    source: str = field(metadata=param("the file or directory"))
    destination: str = field(metadata=param("the path that it is to have, not the directory to put it in"))


@frozen(kw_only=True)
class TransferReceipt(Receipt):
    """From where to where; `replaced` tells that a file there gave way."""

    source: str | None = None
    destination: str | None = None
    replaced: bool | None = None


def mv_handler(params: TransferParams, *, context: ToolContext) -> ToolResult[TransferReceipt]:
    """Give an entry another path; a file there is replaced."""
    fs = require_filesystem(context)
    source, existed = fs.stat(params.source).path, fs.exists(params.destination)
    fs.move(source, params.destination)
    return _transferred("Moved", source, fs.stat(params.destination).path, existed)


def cp_handler(params: TransferParams, *, context: ToolContext) -> ToolResult[TransferReceipt]:
    """Copy an entry, a directory with all that is in it; a file there is replaced."""
    fs = require_filesystem(context)
    source, existed = fs.stat(params.source).path, fs.exists(params.destination)
    fs.copy(source, params.destination)
    return _transferred("Copied", source, fs.stat(params.destination).path, existed)


def _transferred(verb: str, source: str, destination: str, existed: bool) -> ToolResult[TransferReceipt]:
    if source == destination:
        summary, replaced = f"{source} is there already", False
    else:
        replaced = existed
        summary = f"{verb} {source} to {destination}" + (", in the place of the file there" if replaced else "")
    return answer(
        TransferReceipt(source=source, destination=destination, replaced=replaced, summary_text=summarize(summary))
    )
