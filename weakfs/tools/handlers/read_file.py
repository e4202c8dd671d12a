"""`read_file`: text by lines, a range of bytes, or an image."""

from __future__ import annotations

from base64 import b64encode
from typing import Literal

from attrs import evolve, field

from weakfs.class_decorators import frozen
from weakfs.fast_init import fast_init
from weakfs.filesystem import Filesystem, ReadBytesResult, ReadResult
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.filesystem.protocol import check_readable
from weakfs.filesystem.results import count_lines
from weakfs.messages import plural, printable
from weakfs.tools.blobs import BlobReference
from weakfs.tools.context import ToolContext, require_filesystem, tighter
from weakfs.tools.errors import InlineTooLarge, NotText, ToolValidationError
from weakfs.tools.handlers.output import ABOUT_MODE, OutputMode, kept_as_blob, may_withhold, shown, withheld
from weakfs.tools.results import Receipt, ToolResult, answer, answer_verbatim, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.schemas.content import Image, ImageType, image_type
from weakfs.tools.tool import Tool

# 5 MiB in base64, the largest image that all providers accept.
MAX_IMAGE = 3_932_160
# The length in bytes of the longest signature with which a file in an accepted image format begins.
SIGNATURE = 16


@fast_init
@frozen
class ReadFileParams:
    """The parameters of `read_file`: lines counted from 1, or bytes counted from 0, never both."""

    path: str = field(metadata=param("the file"))
    offset: int | None = field(default=None, metadata=param("the first line, counted from 1", at_least=1))
    limit: int | None = field(default=None, metadata=param("maximum number of lines", at_least=1))
    offset_bytes: int | None = field(default=None, metadata=param("the first byte, counted from 0", at_least=0))
    max_bytes: int | None = field(default=None, metadata=param("maximum number of bytes", at_least=1))
    encoding: Literal["utf8", "bytes"] = field(
        default="utf8", metadata=param("utf8, or bytes for a file that is not text")
    )
    output_mode: OutputMode = field(default="auto", metadata=ABOUT_MODE)
    line_numbers: bool = field(default=False, metadata=param("start each line with its number and a tab"))
    images: bool = field(default=False, metadata=param("return image files as images", for_models=False))


@fast_init
@frozen(kw_only=True)
class ReadFileReceipt(Receipt):
    """The content: text, bytes if `encoding="bytes"` was asked for, or a reference to what is too large to show.

    When lines were read, `first_line` (from 1) and `lines` say which of `total_lines` are in `content`, which never
    holds line numbers. When bytes were read, `offset_bytes` and `read_bytes` say which of `size_bytes` are in it.
    `truncated` is true if the file continues. If a policy keeps the contents out of answers, `content` refers to the
    whole file, and fields that would reveal anything about the contents are `None`. For an image, `media_type` is set
    and `content` is `None`: it is in `ToolResult.images`.
    """

    path: str | None = None
    content: str | bytes | BlobReference | None = field(default=None, repr=False)
    truncated: bool | None = None
    size_bytes: int | None = None
    first_line: int | None = None
    lines: int | None = None
    total_lines: int | None = None
    offset_bytes: int | None = None
    read_bytes: int | None = None
    media_type: ImageType | None = None


def read_file_handler(params: ReadFileParams, *, context: ToolContext) -> ToolResult[ReadFileReceipt]:
    """Return a file's text unchanged, so that an edit can quote it; a note follows if the file continues.

    With `images`, PNG, JPEG, GIF and WebP files of up to `MAX_IMAGE` bytes are returned as images. This is the only
    message in which control characters are not escaped.
    """
    fs = require_filesystem(context)
    if may_withhold(context, ("read",)):
        path = fs.read_bytes(params.path, limit=0).path
        if withheld(context, ("read",), (path,)):
            return _read_withheld(by_canonical_paths(fs), path, params, context)
    by_lines = params.offset is not None or params.limit is not None
    by_bytes = params.offset_bytes is not None or params.max_bytes is not None
    if by_lines and (by_bytes or params.encoding == "bytes"):
        raise ToolValidationError(
            "offset and limit count lines, offset_bytes and max_bytes count bytes; give one pair or the other"
        )
    if by_bytes or params.encoding == "bytes":
        return _read_bytes(fs, params, context)
    return _read_lines(fs, params, context)


def _read_withheld(
    fs: Filesystem, path: str, params: ReadFileParams, context: ToolContext
) -> ToolResult[ReadFileReceipt]:
    """Return a reference to a whole file whose contents no answer may show.

    Its kind, its number of lines and the sizes of its parts would reveal something about them.
    """
    if any(value is not None for value in (params.offset, params.limit, params.offset_bytes, params.max_bytes)):
        raise ToolValidationError(
            f"the contents of {path!r} are kept out of answers, so only the whole file can be read; leave out offset, "
            f"limit, offset_bytes and max_bytes"
        )
    check_readable(fs, path)
    found = fs.read_bytes(path)
    kept = kept_as_blob(found.content, params.output_mode, context, "read", paths=(path,))
    assert kept is not None
    receipt = ReadFileReceipt(
        path=path,
        content=kept,
        truncated=found.truncated,
        size_bytes=found.size_bytes,
        summary_text=summarize(f"Read {path}; its contents are kept out of answers"),
    )
    return answer(receipt, shown(kept, "its contents are not shown in answers"))


def _read_lines(fs: Filesystem, params: ReadFileParams, context: ToolContext) -> ToolResult[ReadFileReceipt]:
    limit = params.limit or tighter(context.limits.default_read_limit, fs.limits.default_read_limit)
    first = params.offset or 1
    # Errors about the path are raised here, so that a ValueError below is about the text.
    check_readable(fs, params.path)
    try:
        found = fs.read(params.path, offset=first - 1, limit=-1 if limit is None else limit)
    except ValueError as error:
        image = _read_image(fs, params, context) if params.images else None
        if image is not None:
            return image
        raise NotText(
            f"cannot read {params.path!r} as text: it is not UTF-8; "
            f"read it with encoding='bytes', offset_bytes and max_bytes, or use stat"
        ) from error
    total = found.total_lines
    count = count_lines(found.content)
    last = first + count - 1
    if not total:
        summary, note = f"{found.path} is empty", f"[{found.path} is empty]"
    elif not count and found.truncated:
        summary = f"Read no part of {found.path}: a character of line {first} takes more bytes than may be read"
        note = f"[{summary}]"
    elif not count:
        summary = f"{found.path} has {plural(total, 'line')} and line {first} is past its end"
        note = f"[{summary}]"
    elif not found.truncated and count == total:
        summary, note = f"Read {found.path} ({plural(total, 'line')})", ""
    else:
        summary = f"Read {found.path} (lines {first} to {last} of {total})"
        note = _how_to_go_on(found, first, last)
    is_whole = first == 1 and not found.truncated
    kept = kept_as_blob(found.content, params.output_mode, context, "read", paths=(found.path,))
    receipt = ReadFileReceipt(
        path=found.path,
        content=found.content if kept is None else kept,
        truncated=found.truncated,
        size_bytes=_encoded_size(found.content) if is_whole else by_canonical_paths(fs).stat(found.path).size_bytes,
        first_line=first,
        lines=count,
        total_lines=total,
        summary_text=summarize(summary),
    )
    if kept is not None:
        return answer(receipt, shown(kept, f"read parts of {found.path} with offset and limit"))
    text = _numbered(found.content, first) if params.line_numbers else found.content
    return answer_verbatim(receipt, text + printable(note))


def _encoded_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _numbered(text: str, first: int) -> str:
    """Return lines with their numbers, as `cat -n` prints them."""
    lines = text.split("\n")
    end = lines.pop()
    numbered = [f"{number:6}\t{line}\n" for number, line in enumerate(lines, first)]
    return "".join(numbered) + (f"{first + len(lines):6}\t{end}" if end else "")


def _read_image(fs: Filesystem, params: ReadFileParams, context: ToolContext) -> ToolResult[ReadFileReceipt] | None:
    """Return a file as an image; `None` if it is not an image, or if lines were requested."""
    if params.offset is not None or params.limit is not None:
        return None
    head = fs.read_bytes(params.path, limit=SIGNATURE)
    media_type, path = image_type(head.content), head.path
    if media_type is None:
        return None
    what = f"image ({media_type}, {plural(head.size_bytes, 'byte')})"
    most = MAX_IMAGE if context.capability is None else tighter(MAX_IMAGE, context.capability.max_inline_bytes)
    found = by_canonical_paths(fs).read_bytes(path, limit=most)
    if found.truncated:
        raise InlineTooLarge(
            f"cannot show the {what} {path!r}: {len(found.content)} bytes are allowed; make it smaller first"
        )
    receipt = ReadFileReceipt(
        path=path,
        truncated=False,
        size_bytes=found.size_bytes,
        media_type=media_type,
        summary_text=summarize(f"Read {path}, an {what}"),
    )
    return evolve(answer(receipt), images=(Image(media_type, found.content),))


def _how_to_go_on(found: ReadResult, first: int, last: int) -> str:
    if not found.truncated:
        return ""
    if not found.content.endswith("\n"):
        return f"\n[line {last} is too long to be read at once; read parts of it with offset_bytes and max_bytes]"
    return f"[lines {first} to {last} of {found.total_lines}; continue with offset={last + 1}]"


def _read_bytes(fs: Filesystem, params: ReadFileParams, context: ToolContext) -> ToolResult[ReadFileReceipt]:
    offset = params.offset_bytes or 0
    check_readable(fs, params.path, offset=offset, most=params.max_bytes)
    found = fs.read_bytes(params.path, offset=offset, limit=params.max_bytes)
    text = _whole_characters(found) if params.encoding == "utf8" else None
    content: str | bytes = found.content if text is None else text
    count = len(found.content) if text is None else len(text.encode())
    stop = found.offset + count
    if stop < found.size_bytes and not count:
        summary = f"Read no part of {found.path}: none of its bytes may be read"
        note = f"[{summary}]"
    elif not found.size_bytes:
        summary, note = f"{found.path} is empty", f"[{found.path} is empty]"
    elif not count:
        summary = f"{found.path} has {plural(found.size_bytes, 'byte')} and byte {found.offset} is past its end"
        note = f"[{summary}]"
    else:
        part = f"bytes {found.offset} to {stop} of {found.size_bytes}"
        summary = f"Read {found.path} ({part})"
        note = f"[{part}; continue with offset_bytes={stop}]" if stop < found.size_bytes else ""
    kept = kept_as_blob(content, params.output_mode, context, "read", paths=(found.path,))
    receipt = ReadFileReceipt(
        path=found.path,
        content=content if kept is None else kept,
        truncated=stop < found.size_bytes,
        size_bytes=found.size_bytes,
        offset_bytes=found.offset,
        read_bytes=count,
        summary_text=summarize(summary),
    )
    if kept is not None:
        return answer(receipt, shown(kept, f"read parts of {found.path} with offset_bytes and max_bytes"))
    text = content if isinstance(content, str) else b64encode(content).decode()
    note = printable(note)
    return answer_verbatim(receipt, f"{text}\n{note}" if note and text else text + note)


def _whole_characters(found: ReadBytesResult) -> str:
    """Decode a range of bytes, without a character that is cut off at its end."""
    data = found.content
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        cut = error.end == len(data) and found.truncated and error.reason == "unexpected end of data"
        if cut and error.start > 0:
            return data[: error.start].decode()
        what = f"cannot read {found.path!r} as text at byte {found.offset + error.start}"
        if cut:
            raise NotText(
                f"{what}: max_bytes={len(data)} is less than the size of its character; use 4 or more"
            ) from error
        if error.start == 0 and found.offset and data[0] & 0xC0 == 0x80:
            raise NotText(f"{what}: it is inside a character; start up to 3 bytes earlier") from error
        raise NotText(f"{what}: the byte is not UTF-8; use encoding='bytes'") from error


TOOLS = (
    Tool(
        "read_file",
        "Read a file's text exactly as it is. offset and limit select lines, counted from 1; offset_bytes and "
        "max_bytes select bytes instead. A line in brackets at the end says how to continue.",
        ReadFileParams,
        read_file_handler,
        read_only=True,
        aliases={"file_path": "path"},
        receipt=ReadFileReceipt,
        operation="read",
        is_quick=True,
    ),
)
