"""`edit_file`: one text in a file replaced by another; the record of it is as small as the change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from errno import ENOENT
from typing import Literal

from attrs import field, frozen

from weakfs.editing import EditError, EmptyOldString, Replacement, replace
from weakfs.filesystem import Filesystem
from weakfs.filesystem.errors import absence_in, fault, not_found
from weakfs.messages import clip, plural
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.errors import NotText
from weakfs.tools.permissions import may_show
from weakfs.tools.results import MAX_FAILURE, Receipt, ToolResult, answer, summarize, with_notes
from weakfs.tools.schemas.arguments import param

# What a piece of a splice takes in a record besides its text.
PIECE = 40


@frozen
class EditFileParams:
    """What `edit_file` takes."""

    path: str = field(metadata=param("the file"))
    old_string: str = field(
        repr=False, metadata=param("the exact text to replace, with enough around it to be the only one")
    )
    new_string: str = field(repr=False, metadata=param("the text to put in its place"))
    replace_all: bool = field(default=False, metadata=param("whether every match is replaced"))


@frozen(kw_only=True)
class EditFileReceipt(Receipt):
    """What was edited.

    `replacements` counts the matches, which were replaced if `applied`; `matched` says how, "exact" or "fuzzy".
    After a refusal `lines` are the lines (from 1) that matched, at most the first 1,000; where none did, the first
    and the last line of the nearest text, and `hint` is a word for why that is not the same.
    """

    path: str | None = None
    replacements: int | None = None
    applied: bool = False
    matched: Literal["exact", "fuzzy"] | None = None
    lines: tuple[int, ...] = ()
    hint: str | None = None


def edit_file_handler(params: EditFileParams, *, context: ToolContext) -> ToolResult[EditFileReceipt]:
    """Replace `old_string` in a file; nothing is written unless it is clear which place is meant."""
    fs = require_filesystem(context)
    if not params.old_string:
        return _nothing_to_replace(fs, params.path)
    path, data = _contents(fs, params.path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise NotText(
            f"cannot edit {path!r}: the byte at offset {error.start} is not UTF-8; only text files can be edited"
        ) from error
    try:
        done = replace(text, params.old_string, params.new_string, replace_all=params.replace_all)
    except EditError as error:
        return _refused(path, error if may_show(fs, path) else error.without_quotes())
    if context.capability is not None:
        context.capability.check_replacements(path, done.count)
    added = _check_size(fs, path, text, data, done)
    if done.count == 1 or done.count * PIECE + added < len(data):
        written = fs.splice(path, _in_bytes(text, done))
    else:
        written = fs.write(path, done.text)
    differing = f", matched with other {done.overlooked}" if done.overlooked else ""
    summary = summarize(f"Updated {path} ({plural(done.count, 'replacement')}{differing})")
    receipt = EditFileReceipt(path=path, replacements=done.count, applied=True, matched=done.how, summary_text=summary)
    return answer(receipt, with_notes(summary, written.notes))


def _nothing_to_replace(fs: Filesystem, path: str) -> ToolResult[EditFileReceipt]:
    """Refuse an edit without a text to replace, and name the tool that makes or replaces whole files."""
    try:
        path, _ = _contents(fs, path)
    except FileNotFoundError as error:
        absence = absence_in(error)
        cause = absence.cause if absence is not None else f"cannot edit {path!r}: there is no such file"
        path = absence.path if absence is not None else path
        reason = f"{cause.removeprefix(f'cannot edit {path!r}: ')}, and the text to replace is empty"
        return _refused(path, EmptyOldString(f"{reason}; to make a new file use write_file"))
    return _refused(
        path,
        EmptyOldString(
            "the text to replace is empty; give the exact text that is to change, or use write_file to replace the "
            "whole file"
        ),
    )


def _contents(fs: Filesystem, path: str) -> tuple[str, bytes]:
    """Give a file's canonical path and its bytes; what is no file is refused as an edit of it."""
    try:
        found = fs.read_bytes(path)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        absence = absence_in(error)
        if absence is not None:
            cause = re.sub("^cannot read ", "cannot edit ", absence.cause)
            raise not_found(absence.path, cause, absence.remedy) from error
        message = re.sub("^cannot read ", "cannot edit ", str(error))
        raise fault(type(error), error.errno or ENOENT, message) from error
    return found.path, found.content


def _check_size(fs: Filesystem, path: str, text: str, data: bytes, done: Replacement) -> int:
    """Refuse what would be too large before it is made, and give how many bytes are put in.

    A file of one letter times a page of text is more than fits in memory.
    """
    if done.how == "exact":
        start, stop, inserted = next(done.pieces)
        put, gone = len(inserted.encode()), len(text[start:stop].encode())
        fs.limits.check_size(path, len(data) + done.count * (put - gone))
        return done.count * put
    size = added = end = 0
    for start, stop, inserted in done.pieces:
        put = len(inserted.encode())
        size += len(text[end:start].encode()) + put
        added += put
        end = stop
        # What stands before a piece's end stays, whatever follows.
        fs.limits.check_size(path, size)
    fs.limits.check_size(path, size + len(text[end:].encode()))
    return added


def _refused(path: str, error: EditError) -> ToolResult[EditFileReceipt]:
    message = f"cannot edit {path!r}: {error.reason}"
    receipt = EditFileReceipt(
        status=error.status,
        error_code=error.error_code,
        path=path,
        replacements=error.matches,
        lines=error.lines,
        hint=error.hint,
        summary_text=summarize(message),
    )
    return answer(receipt, clip(message, MAX_FAILURE))


def _in_bytes(text: str, done: Replacement) -> Iterator[tuple[int, int, bytes]]:
    """Give the pieces of a replacement in bytes of the UTF-8 text."""
    if text.isascii():
        for start, stop, inserted in done.pieces:
            yield start, stop, inserted.encode()
        return
    at, seen = 0, 0
    for start, stop, inserted in done.pieces:
        first = at + len(text[seen:start].encode())
        at, seen = first + len(text[start:stop].encode()), stop
        yield first, at, inserted.encode()
