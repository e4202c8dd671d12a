"""`write_file`: replaces or creates a whole file, or appends to one."""

from __future__ import annotations

from base64 import b64decode
from typing import Literal

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init
from weakfs.filesystem import WriteMode
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.messages import plural
from weakfs.tools.blobs import BlobArgument
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.errors import ToolValidationError
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.tool import Tool

MODES: dict[str, WriteMode] = {
    "overwrite": "overwrite",
    "create": "create",
    "create_new": "create",
    "append": "append",
}


@frozen
class InlineBytes:
    """Bytes as an argument."""

    base64: str = field(repr=False, metadata=param("the bytes, in base64", for_models=False))

    def decode(self) -> bytes:
        """Return the bytes; raises `ToolValidationError` if the text is not base64."""
        try:
            return b64decode(self.base64, validate=True)
        except ValueError as error:
            raise ToolValidationError(f"content.base64: it is not base64 ({error}); encode the bytes again") from None


@fast_init
@frozen
class WriteFileParams:
    """The parameters of `write_file`: text, bytes, or a blob that a receipt referred to.

    `create_new` is another name for `create`.
    """

    path: str = field(metadata=param("the file"))
    content: str | InlineBytes | BlobArgument = field(repr=False, metadata=param("the text to write"))
    mode: Literal["overwrite", "create", "create_new", "append"] = field(
        default="overwrite", metadata=param("create refuses to replace a file, append adds to its end")
    )
    create_parents: bool = field(default=True, metadata=param("create missing directories"))


@fast_init
@frozen(kw_only=True)
class WriteFileReceipt(Receipt):
    """What was written: the number of bytes, whether the file is new, and its modification time in nanoseconds."""

    path: str | None = None
    written_bytes: int | None = None
    created: bool | None = None
    new_mtime_ns: int | None = None


def write_file_handler(params: WriteFileParams, *, context: ToolContext) -> ToolResult[WriteFileReceipt]:
    """Write a file."""
    fs = require_filesystem(context)
    created = not fs.exists(params.path)
    mode = MODES[params.mode]
    content = params.content
    if isinstance(content, str):
        done = fs.write(params.path, content, mode=mode, create_parents=params.create_parents)
    else:
        data = content.decode() if isinstance(content, InlineBytes) else context.blobs.get(content.blob_ref)
        done = fs.write_bytes(params.path, data, mode=mode, create_parents=params.create_parents)
    verb = "Created" if created else "Appended to" if mode == "append" else "Wrote"
    summary = summarize(f"{verb} {done.path} ({plural(done.bytes_written, 'byte')})")
    receipt = WriteFileReceipt(
        path=done.path,
        written_bytes=done.bytes_written,
        created=created,
        new_mtime_ns=by_canonical_paths(fs).stat(done.path).modified_ns,
        summary_text=summary,
    )
    return answer(receipt)


TOOLS = (
    Tool(
        "write_file",
        "Write text to a file: replace the whole file, create a new one (mode create), or append (mode append).",
        WriteFileParams,
        write_file_handler,
        aliases={"file_path": "path"},
        receipt=WriteFileReceipt,
        operation="write",
        targets=lambda params, context: (params.path,),
        is_quick=True,
    ),
)
