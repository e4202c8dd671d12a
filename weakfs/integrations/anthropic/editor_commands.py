"""The commands of the text editor tool, with the texts of Anthropic's reference implementation."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import cast

from attrs import frozen

from weakfs.filesystem import Filesystem
from weakfs.filesystem.path_lookup import by_canonical_paths, canonical_path
from weakfs.integrations.anthropic.memory_commands import Refused, numbered, shown_places
from weakfs.messages import clip
from weakfs.tools import Receipt, Tool, ToolCall, ToolContext, ToolResult, require_filesystem
from weakfs.tools.permissions import GuardedFilesystem, check_fits_inline, check_may_show, shows
from weakfs.tools.results import answer_verbatim, summarize

# The number of lines shown before and after a change.
AROUND = 4

NEEDED: Mapping[str, tuple[str, ...]] = {
    "view": (),
    "create": ("file_text",),
    "str_replace": ("old_str",),
    "insert": ("insert_line",),
    "undo_edit": (),
}
EDITS = ("create", "str_replace", "insert")


@frozen(kw_only=True)
class EditorParams:
    """The parameters of all commands of the editor; each command checks those that it needs."""

    command: str
    path: str
    view_range: tuple[int, ...] | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str | None = None
    insert_line: int | None = None
    insert_text: str | None = None


def editor_tool(name: str, max_characters: int | None, *, has_undo: bool) -> Tool:
    """Return the editor as a weakfs tool."""
    return Tool(
        name,
        "View, create and edit text files.",
        EditorParams,
        partial(_handle, name=name, max_characters=max_characters, has_undo=has_undo),
    )


def _handle(
    params: EditorParams, *, context: ToolContext, name: str, max_characters: int | None, has_undo: bool
) -> ToolResult[Receipt]:
    try:
        text = _run(params, context, name, max_characters, has_undo)
    except Refused as refusal:
        text = str(refusal)
        failed = Receipt(status="error", error_code="editor_error", summary_text=summarize(text))
        return answer_verbatim(failed, text)
    return answer_verbatim(Receipt(summary_text=summarize(text.partition("\n")[0])), text)


def _run(params: EditorParams, context: ToolContext, name: str, max_characters: int | None, has_undo: bool) -> str:
    files, command = require_filesystem(context), params.command
    known = [one for one in NEEDED if has_undo or one != "undo_edit"]
    if command not in known:
        raise Refused(f"Unrecognized command {clip(command, 60)}. The allowed commands are: {', '.join(known)}")
    for needed in NEEDED[command]:
        if getattr(params, needed) is None:
            raise Refused(f"Parameter `{needed}` is required for command: {command}")
    if command == "undo_edit":
        return _undo(params, context, name)
    if command == "view":
        return _view(params, files, max_characters)
    if command == "create":
        return _create(params, files)
    return _str_replace(params, files) if command == "str_replace" else _insert(params, files)


def _view(params: EditorParams, files: Filesystem, max_characters: int | None) -> str:
    path, files = _existing(params.path, files)
    if files.is_directory(path):
        if params.view_range is not None:
            raise Refused("The `view_range` parameter is not allowed when `path` points to a directory.")
        below = (one.path for one in files.walk(path) if _is_shown(one.path, path) and shows(files, "list", one.path))
        listing = "\n".join((path, *sorted(below)))
        return (
            f"Here's the files and directories up to 2 levels deep in {params.path}, excluding hidden items:\n"
            f"{listing}\n"
        )
    lines, first = _content(path, files).split("\n"), 1
    if params.view_range is not None:
        first, last = _range(params.view_range, len(lines))
        lines = lines[first - 1 : last]
    content = "\n".join(lines)
    note = ""
    if max_characters is not None and len(content) > max_characters:
        note = f"\n[{len(content) - max_characters} more characters; use view_range to see them]"
        content = content[:max_characters]
    check_fits_inline(files, path, content)
    return _cat(content, params.path, first) + note


def _create(params: EditorParams, files: Filesystem) -> str:
    if files.exists(params.path):
        raise Refused(f"File already exists at: {params.path}. Cannot overwrite files using command `create`.")
    files.write(params.path, cast(str, params.file_text), mode="create")
    return f"File created successfully at: {params.path}"


def _str_replace(params: EditorParams, files: Filesystem) -> str:
    path, files = _existing_file(params, files)
    content, old, new = _content(path, files), cast(str, params.old_str), params.new_str or ""
    if not old:
        raise Refused("Parameter `old_str` is empty; give the text to replace, or use insert")
    count = content.count(old)
    if count == 0:
        raise Refused(f"No replacement was performed, old_str `{old}` did not appear verbatim in {params.path}.")
    if count > 1:
        raise Refused(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines "
            f"[{shown_places(content, old)}]. Please ensure it is unique"
        )
    at = content.count("\n", 0, content.find(old))
    content = content.replace(old, new)
    files.write(path, content)
    snippet = content.split("\n")[max(0, at - AROUND) : at + AROUND + new.count("\n") + 1]
    shown = _cat("\n".join(snippet), f"a snippet of {params.path}", max(0, at - AROUND) + 1)
    return (
        f"The file {params.path} has been edited. {shown}"
        f"Review the changes and make sure they are as expected. Edit the file again if necessary."
    )


def _insert(params: EditorParams, files: Filesystem) -> str:
    (path, files), at = _existing_file(params, files), cast(int, params.insert_line)
    # Versions of the tool have different names for this parameter.
    text = params.insert_text if params.insert_text is not None else params.new_str
    if text is None:
        raise Refused("Parameter `insert_text` is required for command: insert")
    lines, new = _content(path, files).split("\n"), text.split("\n")
    if not 0 <= at <= len(lines):
        raise Refused(
            f"Invalid `insert_line` parameter: {at}. It should be within the range of lines of the file: "
            f"[0, {len(lines)}]"
        )
    # A text that ends with a line break consists of whole lines.
    whole = new[:-1] if len(new) > 1 and new[-1] == "" else new
    files.write(path, "\n".join([*lines[:at], *whole, *lines[at:]]))
    snippet = [*lines[max(0, at - AROUND) : at], *whole, *lines[at : at + AROUND]]
    shown = _cat("\n".join(snippet), f"a snippet of {params.path}", max(1, at - AROUND + 1))
    return (
        f"The file {params.path} has been edited. {shown}Review the changes and make sure they are as expected "
        f"(correct indentation, no duplicate lines, etc). Edit the file again if necessary."
    )


def _undo(params: EditorParams, context: ToolContext, name: str) -> str:
    """Undo the last edit of a file that has not been undone yet."""
    given = require_filesystem(context)
    files, path, undone = by_canonical_paths(given), canonical_path(given, params.path), 0
    check_may_show(files, path)
    for call in reversed(context.session[ToolCall].all()):
        if call.tool != name or call.status != "ok":
            continue
        arguments = cast("Mapping[str, object]", call.read_arguments())
        if canonical_path(given, cast(str, arguments["path"])) != path:
            continue
        if arguments["command"] == "undo_edit":
            undone += 1
        elif arguments["command"] in EDITS and undone:
            undone -= 1
        elif arguments["command"] in EDITS:
            done = context.session.revert(call.call_id, paths=[path])
            if isinstance(files, GuardedFilesystem):
                # If the undo is refused, the call is rolled back.
                files.check_reversion(done, ())
            left = _cat(_content(path, files), params.path, 1) if files.exists(path) else "The file is gone."
            return f"Last edit to {params.path} undone successfully. {left}"
    raise Refused(f"No edit history found for {params.path}.")


def _existing(given: str, files: Filesystem) -> tuple[str, Filesystem]:
    """Return the canonical path of an entry, and the filesystem for it."""
    if not files.exists(given):
        raise Refused(f"The path {given} does not exist. Please provide a valid path.")
    return canonical_path(files, given), by_canonical_paths(files)


def _existing_file(params: EditorParams, files: Filesystem) -> tuple[str, Filesystem]:
    path, files = _existing(params.path, files)
    if files.is_directory(path):
        raise Refused(f"The path {params.path} is a directory and only the `view` command can be used on directories")
    return path, files


def _content(path: str, files: Filesystem) -> str:
    found = files.read_bytes(path)
    check_may_show(files, found.path)
    try:
        return found.content.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"The file {path} is not UTF-8: byte {error.start} cannot be decoded.") from None


def _range(given: tuple[int, ...], count: int) -> tuple[int, int]:
    """Return the first and the last line of a range, counted from 1."""
    if len(given) != 2:
        raise Refused("Invalid `view_range`. It should be a list of two integers.")
    first, last = given
    if not 1 <= first <= count:
        raise Refused(
            f"Invalid `view_range`: {list(given)}. Its first element `{first}` should be within the range of lines of "
            f"the file: [1, {count}]"
        )
    if last != -1 and last < first:
        raise Refused(
            f"Invalid `view_range`: {list(given)}. Its second element `{last}` should be larger or equal than its "
            f"first `{first}`"
        )
    return first, count if last == -1 else min(last, count)


def _is_shown(path: str, below: str) -> bool:
    parts = path.removeprefix(below.rstrip("/")).strip("/").split("/")
    return len(parts) <= 2 and not any(part.startswith(".") for part in parts)


def _cat(content: str, name: str, first: int) -> str:
    listing = "\n".join(numbered(content.split("\n"), first))
    return f"Here's the result of running `cat -n` on {name}:\n{listing}\n"
