"""Dialects: variants of our tools that behave like those of other programs, to run what these programs recorded."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.editing import NoChange, replace
from weakfs.editing.patches.apply import apply_patch_as_codex
from weakfs.editing.patches.line_search.text_search import with_pieces
from weakfs.filesystem import Filesystem
from weakfs.messages import plural
from weakfs.reducers.merging.line_merge import common_ends
from weakfs.tools.context import ToolContext, require_filesystem
from weakfs.tools.errors import NotText, ToolValidationError
from weakfs.tools.results import Receipt, ToolResult, answer, summarize
from weakfs.tools.schemas.arguments import param
from weakfs.tools.tool import Tool
from weakfs.transcripts.reconstruction.claude_edit_rules import (
    Edit,
    find_actual,
    is_bounded,
    mostly_carriage_returns,
    old_text_of,
    worked_on,
)


@frozen
class EditParams:
    """The parameters of Claude Code's `Edit`."""

    path: str = field(metadata=param("the file"))
    old_string: str = field(repr=False, metadata=param("the text to replace; empty for a new file"))
    new_string: str = field(repr=False, metadata=param("the text to put in its place"))
    replace_all: bool = field(default=False, metadata=param("whether every match is replaced"))


@frozen
class OneEdit:
    """One of several edits."""

    old_string: str = field(repr=False, metadata=param("the text to replace"))
    new_string: str = field(repr=False, metadata=param("the text to put in its place"))
    replace_all: bool = field(default=False, metadata=param("whether every match is replaced"))


@frozen
class MultiEditParams:
    """The parameters of Claude Code's `MultiEdit`."""

    path: str = field(metadata=param("the file"))
    edits: tuple[OneEdit, ...] = field(metadata=param("the edits, one after another"))


@frozen
class PatchParams:
    """The parameters of Codex's `apply_patch`."""

    patch: str = field(repr=False, metadata=param("the patch"))


@frozen(kw_only=True)
class ChangeReceipt(Receipt):
    """The changes made; `how` is "exact" unless some text was found only by our more tolerant rules."""

    paths: tuple[str, ...] = ()
    how: str = "exact"


def edit_handler(params: EditParams, *, context: ToolContext) -> ToolResult[ChangeReceipt]:
    """Edit a file as Claude Code does."""
    edit = Edit(params.old_string, params.new_string, params.replace_all)
    return _edit(require_filesystem(context), params.path, [edit])


def multi_edit_handler(params: MultiEditParams, *, context: ToolContext) -> ToolResult[ChangeReceipt]:
    """Make several edits in a file as Claude Code does: all or none."""
    if not params.edits:
        raise ToolValidationError("edits is empty; give at least one")
    edits = [Edit(one.old_string, one.new_string, one.replace_all) for one in params.edits]
    return _edit(require_filesystem(context), params.path, edits)


def patch_handler(params: PatchParams, *, context: ToolContext) -> ToolResult[ChangeReceipt]:
    """Apply a patch as Codex does."""
    fs = require_filesystem(context)
    done = apply_patch_as_codex(fs, params.patch)
    return answer(ChangeReceipt(paths=done.changed_paths, summary_text=summarize(done.summary)))


EDIT = Tool("edit_file", "Edit a file as Claude Code does.", EditParams, edit_handler, receipt=ChangeReceipt)
MULTI_EDIT = Tool(
    "multi_edit", "Make several edits as Claude Code does.", MultiEditParams, multi_edit_handler, receipt=ChangeReceipt
)
PATCH = Tool("apply_patch", "Apply a patch as Codex does.", PatchParams, patch_handler, receipt=ChangeReceipt)
DIALECT_TOOLS = (EDIT, MULTI_EDIT, PATCH)


def _edit(fs: Filesystem, path: str, edits: Sequence[Edit]) -> ToolResult[ChangeReceipt]:
    creates = not edits[0].old
    is_new = creates and not fs.exists(path)
    data = b"" if is_new else fs.read_bytes(path).content
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise NotText(f"cannot edit {path!r}: the byte at offset {error.start} is not UTF-8") from error
    if creates and text.strip():
        raise FileExistsError(f"cannot create {path!r}: it exists and is not empty; give the text to replace")
    has_carriage_returns, hows = mostly_carriage_returns(text), set[str]()
    text, is_plain = worked_on(text, edits)
    for edit in edits:
        text, how = _edited(text, find_actual(text, edit))
        hows.add(how)
    if is_plain and has_carriage_returns:
        text = text.replace("\n", "\r\n")
    if is_new:
        fs.write(path, text)
    else:
        _write_difference(fs, path, data, text.encode())
    receipt = ChangeReceipt(
        paths=(path,),
        how="fuzzy" if "fuzzy" in hows else "exact",
        summary_text=summarize(f"{'Created' if is_new else 'Updated'} {path} ({plural(len(edits), 'edit')})"),
    )
    return answer(receipt)


def _edited(text: str, edit: Edit) -> tuple[str, str]:
    if not edit.old:
        return edit.new, "exact"
    if text.count(edit.old) > 1 and not edit.replace_all:
        # This raises an error that names the line of every match.
        replace(text, edit.old, edit.new)
    old = old_text_of(text, edit)
    if not is_bounded(text, old, edit):
        raise ToolValidationError("the text would become too large; replace less of it at once")
    try:
        done = replace(text, old, edit.new, replace_all=edit.replace_all)
    except NoChange:
        # Our tool preserves line endings and the byte order mark; theirs does not.
        if edit.old == edit.new or old not in text:
            raise
        return text.replace(old, edit.new), "exact"
    if done.how != "exact":
        return done.text, done.how
    # The places are found by our rules; the text inserted there is used as it was sent.
    return with_pieces(text, ((start, stop, edit.new) for start, stop in done.spans)), done.how


def _write_difference(fs: Filesystem, path: str, old: bytes, new: bytes) -> None:
    """Write only what differs, so that the record of it is as small as the change."""
    start, end = common_ends(old, new)
    fs.splice(path, [(start, len(old) - end, new[start : len(new) - end])])
