"""The operations that change nothing: `ls`, `read`, `grep`, `glob` and `download_files`."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Iterable
from errno import EACCES

from attrs import field
from deepagents.backends.protocol import (
    FileData,
    FileDownloadResponse,
    FileInfo,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
)
from deepagents.backends.utils import check_empty_content, compile_grep_include_glob, slice_read_response

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.filesystem import FileEntry, FileStat, Filesystem
from weakfs.integrations.deepagents.exchange import Dialect, answered, exchange_of
from weakfs.messages import plural
from weakfs.tools import Receipt, Tool, ToolContext, ToolResult, require_filesystem
from weakfs.tools.permissions import check_fits_inline, read_shown, shows

# The maximum number of matches of a search; the result says if there are more.
MAX_MATCHES = 10_000
# The same as in deepagents' sandboxes: more would not fit into a model's context.
MAX_BINARY_SIZE = 512_000


@frozen
class PathParams:
    """The parameters of `ls`."""

    path: str


@frozen
class ReadParams:
    """The parameters of `read`; `offset` counts lines from 0."""

    file_path: str
    offset: int = 0
    limit: int = 2000


@frozen
class GrepParams:
    """The parameters of `grep`: literal text, and the files to search."""

    pattern: str
    path: str | None = None
    glob: str | None = None
    max_count: int | None = None


@frozen
class GlobParams:
    """The parameters of `glob`."""

    pattern: str
    path: str | None = None


@frozen
class DownloadParams:
    """The parameters of `download_files`."""

    paths: tuple[str, ...] = field(factory=tuple[str, ...])


def ls(params: PathParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """List a directory."""
    fs = require_filesystem(context)
    entries = fs.list(params.path)
    infos = [_info(fs, entry) for entry in entries if shows(fs, "list", entry.path)]
    return answered(context, LsResult(entries=infos), plural(len(infos), "entry"))


def read(params: ReadParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Read lines of text, or a whole file that is not text as base64."""
    fs = require_filesystem(context)
    path = params.file_path
    data = _content(fs, path)
    text = _text_of(path, data)
    if text is None:
        if len(data) > MAX_BINARY_SIZE:
            raise ValueError(f"File '{path}': Binary file exceeds maximum preview size of {MAX_BINARY_SIZE} bytes")
        check_fits_inline(fs, path, data)
        encoded = FileData(content=base64.standard_b64encode(data).decode(), encoding="base64")
        return answered(context, ReadResult(file_data=encoded), f"{plural(len(data), 'byte')} of {path}")
    reminder = check_empty_content(text)
    if reminder:
        result = ReadResult(file_data=FileData(content=reminder, encoding="utf-8"))
    else:
        result = slice_read_response(FileData(content=text, encoding="utf-8"), params.offset, params.limit)
        check_fits_inline(fs, path, result.file_data["content"] if result.file_data else "")
        if exchange_of(context).dialect == "sandbox" and result.next_offset is not None and result.file_data:
            result.file_data["content"] = result.file_data["content"].removesuffix("\n")
    return answered(context, result, f"read {path}")


def grep(params: GrepParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Find the lines that contain a text."""
    fs = require_filesystem(context)
    includes = None if params.glob is None else compile_grep_include_glob(params.glob)
    top = _root(params.path)
    # No line contains a line break.
    found = [] if "\n" in params.pattern else fs.grep(re.escape(params.pattern), path=top, max_matches=-1)
    base = fs.stat(top).path.rstrip("/")
    most = MAX_MATCHES if params.max_count is None else params.max_count
    matches: list[GrepMatch] = []
    is_cut = getattr(found, "truncated", False)
    for hit in found:
        if not shows(fs, "search", hit.path):
            continue
        if includes is not None and not includes(hit.path[len(base) + 1 :] or hit.path.rpartition("/")[2]):
            continue
        if len(matches) >= most:
            is_cut = True
            break
        matches.append(GrepMatch(path=hit.path, line=hit.line_number, text=hit.line_content))
    return answered(context, GrepResult(matches=matches, truncated=is_cut), plural(len(matches), "match"))


def glob(params: GlobParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Find files by name."""
    fs, dialect = require_filesystem(context), exchange_of(context).dialect
    includes = compile_grep_include_glob(params.pattern)
    top = _root(params.path)
    if not fs.is_directory(top):
        return answered(context, GlobResult(matches=[]), "no such directory")
    base = fs.stat(top).path.rstrip("/")
    matches: list[FileInfo] = []
    is_cut = False
    for entry in fs.walk(top):
        is_wanted = entry.is_file or (entry.is_directory and dialect == "sandbox")
        if is_wanted and shows(fs, "search", entry.path) and includes(entry.path[len(base) + 1 :]):
            if len(matches) == MAX_MATCHES:
                is_cut = True
                break
            matches.append(_match(fs, entry, base, dialect))
    result = GlobResult(matches=matches, truncated=is_cut, truncation_reason="budget" if is_cut else None)
    return answered(context, result, plural(len(matches), "match"))


def download_files(params: DownloadParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Return the contents of each file, or the error that prevented reading it."""
    fs = require_filesystem(context)
    given = [_download(fs, path) for path in params.paths]
    return answered(context, given, f"downloaded {plural(len(given), 'file')}")


READING = (
    Tool("ls", "List a directory.", PathParams, ls, read_only=True, operation="list"),
    Tool("read", "Read a file.", ReadParams, read, read_only=True, operation="read"),
    Tool("grep", "Find lines that contain a text.", GrepParams, grep, read_only=True, operation="search"),
    Tool("glob", "Find files by name.", GlobParams, glob, read_only=True, operation="search"),
    Tool("download_files", "Read whole files.", DownloadParams, download_files, read_only=True, operation="read"),
)


def error_code_of(error: Exception) -> str:
    """Return the error code of deepagents for an error, or the message if there is no code for it."""
    codes: Iterable[tuple[type[Exception], str]] = (
        (FileNotFoundError, "file_not_found"),
        (IsADirectoryError, "is_directory"),
        (NotADirectoryError, "invalid_path"),
        (PermissionError, "permission_denied"),
        (ValueError, "invalid_path"),
    )
    return next((code for kind, code in codes if isinstance(error, kind)), str(error))


def _download(fs: Filesystem, path: str) -> FileDownloadResponse:
    if not path.startswith("/"):
        return FileDownloadResponse(path=path, error="invalid_path")
    try:
        content = _content(fs, path)
        check_fits_inline(fs, path, content)
        return FileDownloadResponse(path=path, content=content)
    except (OSError, ValueError) as error:
        return FileDownloadResponse(path=path, error=error_code_of(error))


def _content(fs: Filesystem, path: str) -> bytes:
    """Return the bytes of a file; refuse a file that its owner may not read, even in memory and for root."""
    found = read_shown(fs, path)
    if not _may_read(fs, path):
        raise fault(PermissionError, EACCES, f"cannot read {path!r}: its owner may not read it; change its mode first")
    return found.content


def _may_read(fs: Filesystem, path: str) -> bool:
    try:
        return bool(fs.stat(path).mode & 0o400)
    except PermissionError:
        # A file whose status is hidden may still be read.
        return True


def _text_of(path: str, data: bytes) -> str | None:
    """Return the text of a file; `None` for images and other media, and for what is not UTF-8."""
    kind = mimetypes.guess_type(path)[0] or ""
    is_media = kind.startswith(("image/", "audio/", "video/")) or kind == "application/pdf"
    if (is_media and kind not in ("image/svg+xml", "video/mp2t")) or b"\0" in data[:8192]:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _root(path: str | None) -> str:
    return "." if path is None else path


def _described(info: FileInfo, found: FileStat) -> FileInfo:
    info["size"] = found.size_bytes
    info["modified_at"] = found.modified_at.isoformat()
    return info


def _info(fs: Filesystem, entry: FileEntry) -> FileInfo:
    info = FileInfo(path=entry.path, is_dir=entry.is_directory)
    if not shows(fs, "stat", entry.path):
        return info
    try:
        return _described(info, fs.stat(entry.path))
    except OSError:
        # The status is hidden, or the entry is gone.
        return info


def _match(fs: Filesystem, entry: FileEntry, base: str, dialect: Dialect) -> FileInfo:
    info = _info(fs, entry)
    if dialect == "sandbox":
        info["path"] = entry.path[len(base) + 1 :]
    return info
