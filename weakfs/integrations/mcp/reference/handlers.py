"""Handlers of the reference server's tools, which work in the allowed directories."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Literal

from attrs import frozen

from weakfs.filesystem import Filesystem
from weakfs.integrations.mcp.reference import texts
from weakfs.integrations.mcp.reference.directories import Directories, HostPath
from weakfs.session.interruption import check_interrupted
from weakfs.tools import Receipt, ToolContext, ToolResult
from weakfs.tools.results import answer_verbatim, summarize

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".svg": "image/svg+xml",
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
}

Result = ToolResult[Receipt]


@frozen
class PathParams:
    """The parameters of tools with one path."""

    path: str


@frozen
class ReadParams:
    """The parameters of `read_file` and `read_text_file`."""

    path: str
    tail: int | None = None
    head: int | None = None


@frozen
class ReadManyParams:
    """The parameters of `read_multiple_files`."""

    paths: tuple[str, ...]


@frozen
class WriteParams:
    """The parameters of `write_file`."""

    path: str
    content: str


@frozen
class Edit:
    """One edit of `edit_file`."""

    oldText: str  # noqa: N815  # the reference server's name
    newText: str  # noqa: N815


@frozen
class EditParams:
    """The parameters of `edit_file`."""

    path: str
    edits: tuple[Edit, ...]
    dry_run: bool = False


@frozen
class MoveParams:
    """The parameters of `move_file`."""

    source: str
    destination: str


@frozen
class SizesParams:
    """The parameters of `list_directory_with_sizes`."""

    path: str
    sort_by: Literal["name", "size"] = "name"


def text_result(text: str, summary: str | None = None) -> Result:
    """Return a successful result with the text unchanged, and a short summary for the record."""
    return answer_verbatim(Receipt(summary_text=summarize(text if summary is None else summary)), text)


def text_of(files: Filesystem, place: HostPath) -> str:
    """Return a file's text; bytes that are not UTF-8 become U+FFFD."""
    return files.read_bytes(place.path).content.decode("utf-8", "replace")


def read_handler(directories: Directories, params: ReadParams, *, context: ToolContext) -> Result:
    """Read a file, or its first or last lines."""
    place = directories.find(params.path)
    if params.head and params.tail:
        raise ValueError("Cannot specify both head and tail parameters simultaneously")
    for name, count in (("head", params.head), ("tail", params.tail)):
        if count is not None and count < 0:
            raise ValueError(f"{name} is {count}; give a number of lines, 0 for all")
    text = text_of(place.bound(context), place)
    if params.tail:
        text = "\n".join(texts.lf(text).split("\n")[-params.tail :])
    elif params.head:
        lines = text.split("\n")
        text = "\n".join((lines if lines[-1] else lines[:-1])[: params.head])
    return text_result(text, f"read {params.path}")


def read_many_handler(directories: Directories, params: ReadManyParams, *, context: ToolContext) -> Result:
    """Read several files; an unreadable file does not prevent reading the others."""
    if not params.paths:
        raise ValueError("paths: At least one file path must be provided")

    def shown(path: str) -> str:
        try:
            place = directories.find(path)
            return f"{path}:\n{text_of(place.bound(context), place)}\n"
        except (OSError, ValueError) as error:
            return f"{path}: Error - {error}"

    return text_result("\n---\n".join(map(shown, params.paths)), f"read {len(params.paths)} files")


def media_handler(directories: Directories, params: PathParams, *, context: ToolContext) -> Result:
    """Read a file as a content block; the message is its JSON."""
    place = directories.find(params.path)
    data = b64encode(place.bound(context).read_bytes(place.path).content).decode()
    media_type = MEDIA_TYPES.get(os.path.splitext(place.real)[1].lower(), "application/octet-stream")
    kind = media_type.partition("/")[0]
    item: dict[str, object] = {"type": kind, "data": data, "mimeType": media_type}
    if kind not in ("image", "audio"):
        item = {
            "type": "resource",
            "resource": {"uri": Path(place.real).as_uri(), "mimeType": media_type, "blob": data},
        }
    return text_result(json.dumps(item), f"read {params.path}")


def write_handler(directories: Directories, params: WriteParams, *, context: ToolContext) -> Result:
    """Create or replace a file."""
    place = directories.find(params.path)
    place.bound(context).write(place.path, params.content, create_parents=False)
    return text_result(f"Successfully wrote to {params.path}")


def edit_handler(directories: Directories, params: EditParams, *, context: ToolContext) -> Result:
    """Make edits one after another, all or none."""
    place = directories.find(params.path)
    files = place.bound(context)
    raw = files.read(place.path, limit=-1).content
    text = before = texts.lf(raw)
    for edit in params.edits:
        done = texts.edited(text, texts.lf(edit.oldText), texts.lf(edit.newText))
        if done is None:
            raise ValueError(f"Could not find exact match for edit:\n{edit.oldText}")
        text = done
    if not params.dry_run:
        has_crlf = "\r\n" in raw and raw.count("\n") == raw.count("\r\n")
        files.write(place.path, text.replace("\n", "\r\n") if has_crlf else text)
    return text_result(texts.fenced_diff(place.real, before, text), f"edited {params.path}")


def mkdir_handler(directories: Directories, params: PathParams, *, context: ToolContext) -> Result:
    """Create a directory with its parents."""
    place = directories.find(params.path)
    place.bound(context).mkdir(place.path)
    return text_result(f"Successfully created directory {params.path}")


def move_handler(directories: Directories, params: MoveParams, *, context: ToolContext) -> Result:
    """Move a file or directory to a path that does not exist yet."""
    source, target = directories.find(params.source), directories.find(params.destination)
    files, others = source.bound(context), target.bound(context)
    if others.exists(target.path):
        raise FileExistsError(f"Destination already exists: {target.real}")
    parent = target.path.rpartition("/")[0] or "/"
    if not others.is_directory(parent):
        raise FileNotFoundError(f"Parent directory does not exist: {os.path.dirname(target.real)}")
    if source.files.root == target.files.root:
        files.move(source.path, target.path)
    else:
        _move_between(files, source.path, others, target.path)
    return text_result(f"Successfully moved {params.source} to {params.destination}")


def _move_between(files: Filesystem, source: str, others: Filesystem, target: str) -> None:
    """Move an entry to another filesystem: write everything there, then delete it here."""
    below = [entry.path for entry in files.walk(source)] if files.is_directory(source) else []
    for path in (source, *below):
        check_interrupted()
        found, place = files.stat(path), target + path.removeprefix(source)
        if found.is_symlink:
            others.symlink(files.readlink(path), place)
            continue
        if found.is_directory:
            others.mkdir(place)
        else:
            others.write_bytes(place, files.read_bytes(path).content, mode="create")
        others.chmod(place, found.mode)
    files.delete(source, recursive=True)


def info_handler(directories: Directories, params: PathParams, *, context: ToolContext) -> Result:
    """Show the details of an entry."""
    place = directories.find(params.path)
    status = place.bound(context).stat(place.path)
    host = os.lstat(place.real)
    fields = {
        "size": host.st_size,
        "created": texts.time_text(status.created_ns / 1e9),
        "modified": texts.time_text(host.st_mtime),
        "accessed": texts.time_text(host.st_atime),
        "isDirectory": str(status.is_directory).lower(),
        "isFile": str(status.is_file).lower(),
        "permissions": f"{status.mode & 0o777:o}",
    }
    return text_result("\n".join(f"{name}: {value}" for name, value in fields.items()))


@frozen
class NoParams:
    """The parameters of tools that have none."""


def allowed_handler(directories: Directories, params: NoParams, *, context: ToolContext) -> Result:
    """List the allowed directories."""
    return text_result("\n".join(("Allowed directories:", *directories.allowed)))
