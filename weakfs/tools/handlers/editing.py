"""`edit_file`: one text in a file replaced by another; the record of it is as small as the change."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import field, frozen

from weakfs.editing import EditError, Replacement, replace
from weakfs.tools.arguments import about
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.errors import NotText
from weakfs.tools.results import MAX_FAILURE, Receipt, ToolResult, answer, clip, plural, summarize

# What a piece of a splice takes in a record besides its text.
PIECE = 40


@frozen
class EditFileParams:
    """What `edit_file` takes."""

    path: str = field(metadata=about("the file"))
    old_string: str = field(
        repr=False, metadata=about("the exact text to replace, with enough around it to be the only one")
    )
    new_string: str = field(repr=False, metadata=about("the text to put in its place"))
    replace_all: bool = field(default=False, metadata=about("whether every match is replaced"))


@frozen(kw_only=True)
class EditFileReceipt(Receipt):
    """What was edited.

    `replacements` counts the matches, which were replaced if `applied`. After a refusal `lines` are the lines
    (from 1) that matched, at most the first 1,000.
    """

    path: str | None = None
    replacements: int | None = None
    applied: bool = False
    lines: tuple[int, ...] = ()


def edit_file_handler(params: EditFileParams, *, context: ToolContext) -> ToolResult[EditFileReceipt]:
    """Replace `old_string` in a file; nothing is written unless it is clear which place is meant."""
    fs = require_filesystem(context)
    found = fs.read_bytes(params.path)
    data, path = found.content, found.path
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise NotText(
            f"cannot edit {path!r}: the byte at offset {error.start} is not UTF-8; only text files can be edited"
        ) from error
    old, new = params.old_string, params.new_string
    if params.replace_all and old:
        # Refused before the text is built: a file of one letter times a page of text is more than fits in memory.
        grown = text.count(old) * (len(new.encode()) - len(old.encode()))
        fs.limits.check_size(path, len(data) + grown)
    try:
        done = replace(text, old, new, replace_all=params.replace_all)
    except EditError as error:
        return _refused(path, error)
    count = done.count
    if context.capability is not None:
        context.capability.check_replacements(path, count)
    if count == 1 or count * (PIECE + len(new)) < len(data):
        fs.splice(path, _in_bytes(text, done))
    else:
        fs.write(path, done.text)
    summary = summarize(f"Updated {path} ({plural(count, 'replacement')})")
    return answer(EditFileReceipt(path=path, replacements=count, applied=True, summary_text=summary))


def _refused(path: str, error: EditError) -> ToolResult[EditFileReceipt]:
    message = f"cannot edit {path!r}: {error.reason}"
    receipt = EditFileReceipt(
        status=error.status,
        error_code=error.error_code,
        path=path,
        replacements=error.matches,
        lines=error.lines,
        summary_text=summarize(message),
    )
    return answer(receipt, clip(message, MAX_FAILURE))


def _in_bytes(text: str, done: Replacement) -> Iterator[tuple[int, int, bytes]]:
    """Give the pieces of a replacement in bytes of the UTF-8 text."""
    at, seen = 0, 0
    for start, stop, inserted in done.pieces:
        first = at + len(text[seen:start].encode())
        at, seen = first + len(text[start:stop].encode()), stop
        yield first, at, inserted.encode()
