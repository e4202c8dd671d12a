"""The operations that change files: `write`, `edit`, `delete` and `upload_files`."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import field
from deepagents.backends.protocol import DeleteResult, EditResult, FileUploadResponse, WriteResult
from deepagents.backends.utils import perform_string_replacement

from weakfs.class_decorators import frozen
from weakfs.filesystem import WriteMode
from weakfs.integrations.deepagents.exchange import answered, exchange_of
from weakfs.integrations.deepagents.read_operations import error_code_of
from weakfs.messages import plural
from weakfs.tools import Receipt, Tool, ToolContext, ToolResult, require_filesystem


@frozen
class WriteParams:
    """The parameters of `write`."""

    file_path: str
    content: str


@frozen
class EditParams:
    """The parameters of `edit`."""

    file_path: str
    old_string: str
    new_string: str
    replace_all: bool = False


@frozen
class DeleteParams:
    """The parameters of `delete`."""

    file_path: str


@frozen
class UploadParams:
    """The recorded arguments of `upload_files`: the paths, and the sizes of the contents."""

    paths: tuple[str, ...] = field(factory=tuple[str, ...])
    sizes: tuple[int, ...] = field(factory=tuple[int, ...])


def write(params: WriteParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Write a whole file."""
    mode: WriteMode = "create" if exchange_of(context).dialect == "sandbox" else "overwrite"
    done = require_filesystem(context).write(params.file_path, params.content, mode=mode)
    return answered(context, WriteResult(path=done.path), f"wrote {done.path}")


def edit(params: EditParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Replace exact text, which must occur once unless all occurrences are to be replaced."""
    fs = require_filesystem(context)
    found = fs.read(params.file_path, limit=-1)
    if params.old_string == params.new_string:
        raise ValueError("Error: old_string and new_string are the same; give the text that should replace it")
    done = perform_string_replacement(found.content, params.old_string, params.new_string, params.replace_all)
    if isinstance(done, str):
        # The sandboxes of deepagents use the words "multiple occurrences".
        count = found.content.count(params.old_string) if params.old_string else 0
        raise ValueError(f"{done} (multiple occurrences)" if count > 1 else done)
    fs.splice(found.path, _pieces(found.content, params.old_string, params.new_string))
    result = EditResult(path=found.path, occurrences=done[1])
    return answered(context, result, f"edited {found.path}: {plural(done[1], 'replacement')}")


def delete(params: DeleteParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Delete a file, or a directory with everything in it."""
    fs = require_filesystem(context)
    path = params.file_path.rstrip("/") or "/"
    count = fs.delete(path, recursive=True)
    return answered(context, DeleteResult(path=params.file_path), f"deleted {plural(count, 'entry')} at {path}")


def upload_files(params: UploadParams, *, context: ToolContext) -> ToolResult[Receipt]:
    """Write several files; each may fail without affecting the others."""
    fs = require_filesystem(context)
    given: list[FileUploadResponse] = []
    for path, content in zip(params.paths, exchange_of(context).contents, strict=True):
        error: str | None = None if path.startswith("/") else "invalid_path"
        if error is None:
            try:
                fs.write_bytes(path, content)
            except (OSError, ValueError) as failure:
                error = error_code_of(failure)
        given.append(FileUploadResponse(path=path, error=error))
    return answered(context, given, f"uploaded {plural(sum(one.error is None for one in given), 'file')}")


WRITING = (
    Tool("write", "Write a file.", WriteParams, write, operation="write"),
    Tool("edit", "Replace text in a file.", EditParams, edit, operation="edit"),
    Tool("delete", "Delete a file or directory.", DeleteParams, delete, operation="write"),
    Tool("upload_files", "Write several files.", UploadParams, upload_files, operation="write"),
)


def _pieces(text: str, old: str, new: str) -> Iterator[tuple[int, int, bytes]]:
    """Yield the pieces of a file's bytes that a replacement of all occurrences changes."""
    content = new.encode()
    size = len(old.encode())
    at = start = 0
    while (found := text.find(old, start)) >= 0:
        at += len(text[start:found].encode())
        yield at, at + size, content
        at, start = at + size, found + len(old)
