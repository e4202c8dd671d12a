"""The operations of a sandbox on its files: each is one recorded call of the session."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Any, cast

from agents.sandbox.files import EntryKind, FileEntry
from agents.sandbox.types import Permissions

from weakfs.class_decorators import define, frozen
from weakfs.filesystem import Filesystem
from weakfs.integrations.command_files import printed_text
from weakfs.processes import CommandOptions
from weakfs.tools import Receipt, Tool, ToolContext, ToolResult, require_filesystem
from weakfs.tools.blobs import BlobReference
from weakfs.tools.handlers import ShellOptions, ShellParams, ShellReceipt, shell_handler
from weakfs.tools.permissions import Operation, check_fits_inline, check_shows_size, read_shown, shows
from weakfs.tools.results import answer, summarize

# Replaces output that a capability keeps out of answers.
NOT_SHOWN = "[more than the capability shows]\n"


@frozen
class ExecuteParams:
    """The parameters of `execute`; the default timeout is the longest one allowed."""

    command: str
    timeout: float | None = None


@frozen
class FileParams:
    """The recorded arguments of the other operations."""

    path: str
    destination: str | None = None
    size: int | None = None


@frozen
class Executed:
    """How a command ended, and what it printed."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool


@define
class Exchange:
    """The exchange between a sandbox and a handler, apart from what is recorded of a call."""

    options: CommandOptions
    work: Callable[[Filesystem], object] | None = None
    result: Any = None


def execute(params: ExecuteParams, *, context: ToolContext) -> ToolResult[ShellReceipt]:
    """Run a command."""
    exchange = cast(Exchange, context.adapter)
    options = cast(ShellOptions, exchange.options)
    timeout = options.max_timeout if params.timeout is None else params.timeout
    result = shell_handler(ShellParams(params.command, timeout), context=context, options=options)
    receipt = result.value
    if isinstance(receipt, ShellReceipt) and receipt.timed_out is not None:
        exchange.result = Executed(
            exit_code=receipt.exit_code,
            stdout=_printed(receipt.stdout, context),
            stderr=_printed(receipt.stderr, context),
            timed_out=receipt.timed_out,
        )
    return result


def use_files(params: FileParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Perform the operation of the sandbox on the files."""
    exchange = cast(Exchange, context.adapter)
    assert exchange.work is not None
    exchange.result = exchange.work(require_filesystem(context))
    return answer(Receipt(summary_text=summarize(params.path)))


def _tool(name: str, description: str, operation: Operation) -> Tool:
    return Tool(name, description, FileParams, use_files, operation=operation, is_quick=True)


TOOLS = (
    Tool("execute", "Run a command.", ExecuteParams, execute, receipt=ShellReceipt, operation="shell"),
    _tool("read_file", "Read a file.", "read"),
    _tool("write_file", "Write a file.", "write"),
    _tool("list_directory", "List a directory.", "list"),
    _tool("make_directory", "Make a directory.", "write"),
    _tool("change_mode", "Set the permission bits of a file or directory.", "write"),
    _tool("remove", "Remove a file or directory.", "write"),
    _tool("move", "Move a file.", "write"),
    _tool("export_files", "Read all files as an archive.", "read"),
    _tool("import_files", "Write the files of an archive.", "write"),
)

READING = frozenset({"read_file", "list_directory", "export_files"})


def _printed(output: str | BlobReference | None, context: ToolContext) -> bytes:
    text = printed_text(output, context)
    return (NOT_SHOWN if text is None else text).encode("utf-8", "surrogateescape")


def content_of(place: str, limit: int | None, files: Filesystem) -> bytes:
    """Read a file whose contents may be shown in answers."""
    found = read_shown(files, place, limit=limit)
    check_fits_inline(files, found.path, found.content)
    return found.content


def entries_of(place: str, files: Filesystem) -> list[FileEntry]:
    """List a directory as the SDK does."""
    listed: list[FileEntry] = []
    for entry in files.list(place):
        if not shows(files, "list", entry.path):
            continue
        check_shows_size(files, entry.path)
        found = files.stat(entry.path)
        kind = EntryKind.OTHER
        if entry.is_symlink:
            kind = EntryKind.SYMLINK
        elif entry.is_directory:
            kind = EntryKind.DIRECTORY
        elif entry.is_file:
            kind = EntryKind.FILE
        permissions = Permissions.from_mode(found.mode)
        permissions.directory = entry.is_directory
        listed.append(
            FileEntry(
                path=f"{place.rstrip('/')}/{entry.name}",
                permissions=permissions,
                owner="root",
                group="root",
                size=found.size_bytes,
                kind=kind,
            )
        )
    return listed


def target_of(path: str, target: str) -> str:
    """Return where a symbolic link points."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
