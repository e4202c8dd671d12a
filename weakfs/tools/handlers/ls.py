"""`ls`, `stat` and `exists`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, repeat
from typing import Literal

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init
from weakfs.filesystem import FileEntry, FileStat, Filesystem
from weakfs.filesystem.path_lookup import by_canonical_paths, canonical_path
from weakfs.messages import one_line, plural
from weakfs.tools.blobs import BlobReference
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.handlers.output import ABOUT_MODE, OutputMode, kept_as_blob, shown
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.tool import Tool

Kind = Literal["file", "directory", "symlink"]


def kind_of(entry: FileStat | FileEntry) -> Kind:
    """Return the kind of an entry; a symbolic link is not followed."""
    if entry.is_symlink:
        return "symlink"
    return "directory" if entry.is_directory else "file"


@frozen
class LsParams:
    """The parameters of `ls`."""

    path: str = field(default="/", metadata=param("the directory"))
    max_results: int = field(default=1000, metadata=param("maximum number of entries", at_least=1))
    output_mode: OutputMode = field(default="auto", metadata=ABOUT_MODE)
    depth: int = field(default=1, metadata=param("how many levels of directories to list", at_least=1))
    sizes: bool = field(default=False, metadata=param("show file sizes in bytes"))


@frozen(kw_only=True)
class LsReceipt(Receipt):
    """The entries of a directory by name, each directory followed by its own entries if there are several levels.

    `count` is the number of entries on all requested levels; `None` if they were not all counted. `truncated` is true
    if some were left out. `sizes`, if requested, has the size in bytes of each file, and `None` for other entries. If
    there are too many entries to show, `entries` refers to the lines of the answer.
    """

    path: str | None = None
    entries: tuple[FileEntry, ...] | BlobReference | None = None
    count: int | None = None
    truncated: bool | None = None
    sizes: tuple[int | None, ...] | None = None


# The suffix of a name, as in `ls -F`.
MARKS: dict[Kind, str] = {"file": "", "directory": "/", "symlink": "@"}


def ls_handler(params: LsParams, *, context: ToolContext) -> ToolResult[LsReceipt]:
    """List a directory, one name per line, indented by level; directories end in `/`, links in `@`."""
    fs = require_filesystem(context)
    top = fs.list(params.path)
    path = top[0].path.rpartition("/")[0] or "/" if top else canonical_path(fs, params.path)
    # One more than is shown, to learn whether there are more.
    fs = by_canonical_paths(fs)
    below = list(islice(_levels(fs, top, params.depth), params.max_results + 1))
    entries = tuple(entry for _, entry in below[: params.max_results])
    truncated = len(below) > len(entries)
    count = len(top) if params.depth == 1 else None if truncated else len(entries)
    sizes = tuple(_size(fs, entry) for entry in entries) if params.sizes else None
    lines = [
        f"{'  ' * level}{one_line(entry.name)}{MARKS[kind_of(entry)]}{'' if size is None else f' {size}'}"
        for (level, entry), size in zip(below, sizes or repeat(None), strict=False)
    ][: len(entries)]
    named = (path, *(entry.path for entry in entries))
    kept = kept_as_blob("\n".join(lines), params.output_mode, context, "list", paths=named)
    many = f"at least {plural(len(entries), 'entry')}" if count is None else plural(count, "entry")
    receipt = LsReceipt(
        path=path,
        entries=entries if kept is None else kept,
        count=count,
        truncated=truncated,
        sizes=sizes if kept is None else None,
        summary_text=summarize(
            f"{path} has {many}"
            + (f" in {params.depth} levels" if params.depth > 1 else "")
            + (f", of which {len(entries)} {'is' if len(entries) == 1 else 'are'} shown" if truncated else "")
        ),
    )
    if not entries:
        return answer(receipt)
    if kept is not None:
        return answer(receipt, shown(kept, "list a part with glob, or set max_results to get a shorter answer"))
    if truncated:
        lines.append(f"[{receipt.summary_text}; set max_results to see more]")
    return answer(receipt, "\n".join(lines))


def _levels(fs: Filesystem, entries: Sequence[FileEntry], depth: int) -> Iterator[tuple[int, FileEntry]]:
    """Yield entries and those below them, each with its level (from 0); skip directories that cannot be listed."""
    stack = [iter(entries)]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            continue
        yield len(stack) - 1, entry
        if entry.is_directory and len(stack) < depth:
            with suppress(OSError):
                stack.append(iter(fs.list(entry.path)))


def _size(fs: Filesystem, entry: FileEntry) -> int | None:
    """Return the size of a file; `None` for other entries, and for one that is gone or may not be accessed."""
    with suppress(OSError):
        return fs.stat(entry.path).size_bytes if entry.is_file else None
    return None


@fast_init
@frozen
class StatParams:
    """The parameters of `stat`."""

    path: str = field(metadata=param("the file or directory"))


@fast_init
@frozen(kw_only=True)
class StatReceipt(Receipt):
    """The status of an entry; times are in nanoseconds, and `target` is where a link points, if it may be read."""

    path: str | None = None
    kind: Kind | None = None
    size_bytes: int | None = None
    mode: int | None = None
    created_ns: int | None = None
    modified_ns: int | None = None
    target: str | None = None


def stat_handler(params: StatParams, *, context: ToolContext) -> ToolResult[StatReceipt]:
    """Describe an entry without reading it."""
    found = require_filesystem(context).stat(params.path)
    kind = kind_of(found)
    what = "symbolic link" + (f" to {found.target}" if found.target else "") if kind == "symlink" else kind
    size = f", {plural(found.size_bytes, 'byte')}" if kind == "file" else ""
    time = found.modified_at.isoformat(sep=" ", timespec="seconds")
    return answer(
        StatReceipt(
            path=found.path,
            kind=kind,
            size_bytes=found.size_bytes,
            mode=found.mode,
            created_ns=found.created_ns,
            modified_ns=found.modified_ns,
            target=found.target or None,
            summary_text=summarize(f"{found.path}: {what}{size}, mode {found.mode:04o}, modified {time}"),
        )
    )


@frozen
class ExistsParams:
    """The parameters of `exists`."""

    path: str = field(metadata=param("the file or directory"))


@frozen(kw_only=True)
class ExistsReceipt(Receipt):
    """Whether there is an entry, and what it is."""

    path: str | None = None
    exists: bool | None = None
    kind: Kind | None = None


def exists_handler(params: ExistsParams, *, context: ToolContext) -> ToolResult[ExistsReceipt]:
    """Check whether an entry exists; a link counts, wherever it points."""
    fs = require_filesystem(context)
    if not fs.exists(params.path):
        path = canonical_path(fs, params.path)
        return answer(ExistsReceipt(path=path, exists=False, summary_text=summarize(f"{path} does not exist")))
    found = fs.stat(params.path)
    kind = kind_of(found)
    summary = summarize(f"{found.path} exists ({kind})")
    return answer(ExistsReceipt(path=found.path, exists=True, kind=kind, summary_text=summary))


TOOLS = (
    Tool(
        "ls",
        "List a directory, one name per line; directories end in /, symbolic links in @. With depth above 1, the "
        "entries of each directory follow it, indented.",
        LsParams,
        ls_handler,
        read_only=True,
        receipt=LsReceipt,
        operation="list",
    ),
    Tool(
        "stat",
        "Show the kind, size, mode and modification time of a file or directory.",
        StatParams,
        stat_handler,
        read_only=True,
        aliases={"file_path": "path"},
        receipt=StatReceipt,
        operation="stat",
        is_quick=True,
    ),
    Tool(
        "exists",
        "Check whether a file or directory exists.",
        ExistsParams,
        exists_handler,
        read_only=True,
        aliases={"file_path": "path"},
        receipt=ExistsReceipt,
        operation="stat",
        is_quick=True,
    ),
)
