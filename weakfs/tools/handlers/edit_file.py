"""`edit_file`: replaces texts in a file; its record is as small as the change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from errno import ENOENT
from typing import TYPE_CHECKING, Literal

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.editing import EditError, EmptyOldString
from weakfs.errors import fault
from weakfs.fast_init import fast_init
from weakfs.filesystem import Filesystem
from weakfs.filesystem.errors import absence_in, not_found
from weakfs.filesystem.path_lookup import by_canonical_paths
from weakfs.filesystem.protocol import check_readable
from weakfs.messages import clip, plural
from weakfs.session.interruption import check_interrupted
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.errors import NotText, ToolValidationError
from weakfs.tools.permissions import may_show
from weakfs.tools.results import MAX_FAILURE, Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.tool import Tool

if TYPE_CHECKING:
    from weakfs.editing import Replacement

# The size of a piece of a splice in a record, without its text.
PIECE = 40


@frozen
class Edit:
    """One of several edits of a call."""

    old_string: str = field(repr=False, metadata=param("the text to replace"))
    new_string: str = field(repr=False, metadata=param("the text to put in its place"))
    replace_all: bool = field(default=False, metadata=param("replace every match"))


@fast_init
@frozen
class EditFileParams:
    """The parameters of `edit_file`: one edit, or several in `edits`."""

    path: str = field(metadata=param("the file"))
    old_string: str | None = field(
        default=None,
        repr=False,
        metadata=param("the exact text to replace, with enough context to be unique"),
    )
    new_string: str | None = field(default=None, repr=False, metadata=param("the text to put in its place"))
    replace_all: bool = field(default=False, metadata=param("replace every match"))
    edits: tuple[Edit, ...] | None = field(
        default=None,
        repr=False,
        metadata=param("several edits instead of old_string and new_string, made in order, all or none"),
    )

    def each(self) -> tuple[Edit, ...]:
        """Return the edits of the call; raises `ToolValidationError` unless they are given in exactly one way."""
        if self.edits is None:
            given = (("old_string", self.old_string, "replace"), ("new_string", self.new_string, "put in its place"))
            missing = [f"{name}: missing; give the text to {what}" for name, text, what in given if text is None]
            if self.old_string is None or self.new_string is None:
                raise ToolValidationError(*missing)
            return (Edit(self.old_string, self.new_string, self.replace_all),)
        if self.old_string is not None or self.new_string is not None or self.replace_all:
            raise ToolValidationError(
                "edits: given together with old_string, new_string or replace_all; put each edit into edits"
            )
        if not self.edits:
            raise ToolValidationError("edits: the list is empty; give at least one edit")
        return self.edits


@fast_init
@frozen(kw_only=True)
class EditFileReceipt(Receipt):
    """What was edited.

    `replacements` counts the matches of all edits, which were replaced if `applied` is true. `matched` is "fuzzy" if an
    edit did not match exactly. If an edit was refused, `edit` is its number (from 1), and `lines` are the lines (from
    1) that matched, at most the first 1,000. If none matched, `lines` are the first and the last line of the most
    similar text, and `hint` is a keyword for the difference. Lines are counted in the text as the previous edits left
    it.
    """

    path: str | None = None
    replacements: int | None = None
    applied: bool = False
    matched: Literal["exact", "fuzzy"] | None = None
    lines: tuple[int, ...] = ()
    hint: str | None = None
    edit: int | None = None


class _Refused(Exception):
    """Raised if an edit of a call is refused; it carries the number of the edit, and the error."""

    def __init__(self, number: int, error: EditError) -> None:
        self.number = number
        self.error = error


def edit_file_handler(params: EditFileParams, *, context: ToolContext) -> ToolResult[EditFileReceipt]:
    """Replace texts in a file; nothing is written unless every edit is unambiguous."""
    fs = require_filesystem(context)
    edits = params.each()
    if not edits[0].old_string:
        return _nothing_to_replace(fs, params.path, len(edits))
    path, data = _contents(fs, params.path)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise NotText(
            f"cannot edit {path!r}: the byte at offset {error.start} is not UTF-8; only text files can be edited"
        ) from error
    try:
        made = list(_apply_edits(fs, path, text, edits, context))
    except _Refused as refused:
        why = refused.error if may_show(fs, path) else refused.error.without_quotes()
        return _refused(path, why, refused.number, len(edits))
    fs = by_canonical_paths(fs)
    for one in made:
        if one.pieces is not None:
            fs.splice(path, one.pieces)
        else:
            fs.write(path, one.text)
    count = sum(one.count for one in made)
    overlooked = dict.fromkeys(one.overlooked for one in made if one.overlooked)
    differing = f", matched with other {' and '.join(overlooked)}" if overlooked else ""
    several = f" in {len(edits)} edits" if len(edits) > 1 else ""
    summary = summarize(f"Updated {path} ({plural(count, 'replacement')}{several}{differing})")
    matched: Literal["exact", "fuzzy"] = "fuzzy" if overlooked else "exact"
    receipt = EditFileReceipt(path=path, replacements=count, applied=True, matched=matched, summary_text=summary)
    return answer(receipt)


@frozen
class _AppliedEdit:
    """An edit that can be written: as pieces of the file's bytes, or as the whole new text if that is shorter.

    It does not keep the text that it was made in, because a call may have hundreds of edits of a large file.
    """

    count: int
    overlooked: str
    pieces: Iterable[tuple[int, int, bytes]] | None
    text: str = ""


def _apply_edits(
    fs: Filesystem, path: str, text: str, edits: tuple[Edit, ...], context: ToolContext
) -> Iterator[_AppliedEdit]:
    """Make edits one after another, without writing any; raises `_Refused` for one that cannot be made."""
    from weakfs.editing.replacement import InexactSearches, replace

    count = 0
    searches = InexactSearches()
    for number, edit in enumerate(edits, 1):
        check_interrupted()
        try:
            if not edit.old_string:
                raise EmptyOldString("the text to replace is empty; give the exact text that is to change")
            if len(edits) > 1 and edit.old_string not in text:
                searches.add(len(text))
            done = replace(text, edit.old_string, edit.new_string, replace_all=edit.replace_all)
        except EditError as error:
            raise _Refused(number, error) from error
        count += done.count
        if context.capability is not None:
            context.capability.check_replacements(path, count)
        size = len(text.encode())
        added = _check_size(fs, path, text, size, done)
        if done.count == 1 or done.count * PIECE + added < size:
            pieces = _in_bytes(text, done)
            yield _AppliedEdit(done.count, done.overlooked, pieces if number == len(edits) else tuple(pieces))
        else:
            yield _AppliedEdit(done.count, done.overlooked, None, done.text)
        if number < len(edits):
            text = done.text


def _nothing_to_replace(fs: Filesystem, path: str, count: int) -> ToolResult[EditFileReceipt]:
    """Refuse an edit that has no text to replace, and name the tool that creates or replaces whole files."""
    try:
        path, _ = _contents(fs, path)
    except FileNotFoundError as error:
        absence = absence_in(error)
        cause = absence.cause if absence is not None else f"cannot edit {path!r}: there is no such file"
        path = absence.path if absence is not None else path
        reason = f"{cause.removeprefix(f'cannot edit {path!r}: ')}, and the text to replace is empty"
        return _refused(path, EmptyOldString(f"{reason}; to make a new file use write_file"), 1, count)
    return _refused(
        path,
        EmptyOldString(
            "the text to replace is empty; give the exact text that is to change, or use write_file to replace the "
            "whole file"
        ),
        1,
        count,
    )


def _contents(fs: Filesystem, path: str) -> tuple[str, bytes]:
    """Return a file's canonical path and its bytes; errors say that it cannot be edited."""
    try:
        check_readable(fs, path)
        found = fs.read_bytes(path)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        absence = absence_in(error)
        if absence is not None:
            cause = re.sub("^cannot read ", "cannot edit ", absence.cause)
            raise not_found(absence.path, cause, absence.remedy) from error
        message = re.sub("^cannot read ", "cannot edit ", str(error))
        raise fault(type(error), error.errno or ENOENT, message) from error
    return found.path, found.content


def _check_size(fs: Filesystem, path: str, text: str, size: int, done: Replacement) -> int:
    """Return the number of bytes that an edit adds; raise before making a result that would be too large.

    If every letter of a large file were replaced with a page of text, the result would not fit in memory.
    """
    if done.how == "exact":
        start, stop, inserted = next(done.pieces)
        put, gone = len(inserted.encode()), len(text[start:stop].encode())
        fs.limits.check_size(path, size + done.count * (put - gone))
        return done.count * put
    size = added = end = 0
    for start, stop, inserted in done.pieces:
        put = len(inserted.encode())
        size += len(text[end:start].encode()) + put
        added += put
        end = stop
        # The text before the end of a piece is final, whatever follows.
        fs.limits.check_size(path, size)
    fs.limits.check_size(path, size + len(text[end:].encode()))
    return added


def _refused(path: str, error: EditError, number: int, count: int) -> ToolResult[EditFileReceipt]:
    message = f"cannot edit {path!r}: {error.reason}"
    if count > 1:
        after = ", in the text as the edits before it left it" if number > 1 else ""
        message = f"cannot edit {path!r}: edit {number} of {count}{after}: {error.reason}\nNothing was changed."
    receipt = EditFileReceipt(
        status=error.status,
        error_code=error.error_code,
        path=path,
        replacements=error.matches,
        lines=error.lines,
        hint=error.hint,
        edit=number,
        summary_text=summarize(message),
    )
    return answer(receipt, clip(message, MAX_FAILURE))


def _in_bytes(text: str, done: Replacement) -> Iterator[tuple[int, int, bytes]]:
    """Yield the pieces of a replacement, with positions in bytes of the UTF-8 text."""
    if text.isascii():
        for start, stop, inserted in done.pieces:
            yield start, stop, inserted.encode()
        return
    at, seen = 0, 0
    for start, stop, inserted in done.pieces:
        first = at + len(text[seen:start].encode())
        at, seen = first + len(text[start:stop].encode()), stop
        yield first, at, inserted.encode()


TOOLS = (
    Tool(
        "edit_file",
        "Replace old_string with new_string in a file. old_string must occur in the file exactly once, with every "
        "space and line break as in the file, unless replace_all is set. Use edits to make several such changes at "
        "once.",
        EditFileParams,
        edit_file_handler,
        aliases={"file_path": "path", "old_str": "old_string", "new_str": "new_string"},
        receipt=EditFileReceipt,
        operation="edit",
        targets=lambda params, context: (params.path,),
    ),
)
