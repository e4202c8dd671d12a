"""Claude Code's tools: our equivalent of each, and what its session files say about the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from weakfs.transcripts.json_lines import fields_of, items_of
from weakfs.transcripts.programs.program import (
    Program,
    read_arguments,
    said_in,
    search_step,
    shell_step,
    text_before_failure,
)
from weakfs.transcripts.programs.recorded_fields import Recorded, whole
from weakfs.transcripts.reconstruction.changed_lines import skeleton_of
from weakfs.transcripts.reconstruction.claude_edit_rules import Edit, recorded_outcome
from weakfs.transcripts.reconstruction.file_text import UNKNOWN, Text
from weakfs.transcripts.reconstruction.numbered_text import read_numbered
from weakfs.transcripts.reconstruction.partial_text import Part
from weakfs.transcripts.reconstruction.recorded_calls import NotPerformed, Step, Texts
from weakfs.transcripts.reconstruction.recorded_hunks import read_structured

# Refusals that say nothing about a file's text: the call was never carried out.
_REFUSALS = (
    "the user doesn't want to",
    "request interrupted",
    "has not been read yet",
    "has been modified since read",
    "has been unexpectedly modified",
    "requested permissions",
    "permission to",
    "permission denied",
    "has been denied",
    "hook error",
    "blocked by",
    "inputvalidationerror",
    "no such tool available",
    "exceeds maximum allowed",
    "cannot read binary files",
    "jupyter notebook",
    "sibling tool call errored",
    "tool use was rejected",
    "operation was aborted",
    "plan mode",
)
_MISSING = ("file does not exist", "no such file or directory", "directory does not exist")
# Tools that change no file and start nothing that does; for any other tool this is unknown.
_WITHOUT_FILES = frozenset(
    {
        "TodoWrite",
        "TodoRead",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskUpdate",
        "WebFetch",
        "WebSearch",
        "ToolSearch",
        "AskUserQuestion",
        "EnterPlanMode",
        "ExitPlanMode",
        "ListMcpResourcesTool",
        "ReadMcpResourceTool",
    }
)


def succeeded(recorded: Recorded) -> bool | None:
    """Return whether the call succeeded, `None` if the recording does not say."""
    call = recorded.call
    if not call.is_answered:
        return None
    # An answer may lack `is_error` although its outcome is an error.
    return not call.recorded_error and not (isinstance(call.result, str) and call.result.startswith("Error: "))


def _before_failure(recorded: Recorded) -> Text:
    said = said_in(recorded.call.recorded, recorded.call.result)
    return text_before_failure(said, refusals=_REFUSALS, missing=_MISSING)


def _path(recorded: Recorded, name: str = "file_path") -> str:
    recorded_path = recorded.result.get("filePath")
    value = recorded.arguments.get(name)
    if not isinstance(value, str) and isinstance(recorded_path, str):
        value = recorded_path
    if not isinstance(value, str):
        raise NotPerformed(f"its argument {name!r} is not text")
    return recorded.path(value)


def _read(recorded: Recorded) -> Step:
    path = _path(recorded)
    arguments = read_arguments(recorded, path)
    if not succeeded(recorded):
        before = UNKNOWN if succeeded(recorded) is None else _before_failure(recorded)
        return Step("read_file", arguments, succeeded(recorded), {path: before})
    file = fields_of(recorded.result.get("file"))
    content = file.get("content")
    if recorded.result.get("type", "text") not in ("text", "file_unchanged"):
        raise NotPerformed("its result is not text")
    if not isinstance(content, str):
        return _read_as_shown(recorded, path, arguments)
    first, count, total = file.get("startLine", 1), file.get("numLines"), file.get("totalLines")
    is_whole = first in (0, 1) and isinstance(count, int) and isinstance(total, int) and count >= total
    if isinstance(count, int) and count > 0:
        arguments["limit"] = count
    part = None
    if not is_whole and isinstance(first, int) and first > 0 and isinstance(total, int):
        part = Part(first, tuple(content.split("\n")), total)
        part = part if len(part.lines) == count else None
    return Step("read_file", arguments, True, {path: content if is_whole else UNKNOWN}, shown=content, part=part)


def _read_as_shown(recorded: Recorded, path: str, arguments: dict[str, object]) -> Step:
    """Reconstruct what was read from the lines that the model was shown."""
    shown = recorded.call.recorded or ""
    if "file exists but the contents are empty" in shown:
        return Step("read_file", arguments, True, {path: ""}, shown="", is_before_exact=False)
    found = read_numbered(shown)
    if found is None:
        unchecked = "its result is not recorded as text"
        return Step("read_file", arguments, True, {path: UNKNOWN}, unchecked=unchecked, needs=path)
    first, text = found
    count = text.count("\n") + 1
    is_whole = first == 1 and "limit" not in arguments and count < 2000
    arguments["limit"] = count
    return Step("read_file", arguments, True, {path: text if is_whole else UNKNOWN}, shown=text, is_before_exact=False)


def _write(recorded: Recorded) -> Step:
    path, content = _path(recorded), recorded.text("content")
    result, done = recorded.result, succeeded(recorded)
    if done is False:
        return Step("write_file", {"path": path, "content": content}, done, {path: _before_failure(recorded)})
    written = result.get("content")
    content = written if isinstance(written, str) else content
    before = _original(result, is_new=result.get("type") == "create")
    return Step("write_file", {"path": path, "content": content}, done, {path: before}, lambda _: {path: content})


def _original(result: Mapping[str, object], *, is_new: bool) -> Text:
    for name in ("originalFile", "originalFileContents"):
        value = result.get(name)
        if isinstance(value, str):
            return value
    # If the field is null, the text may also have been too long to be recorded.
    return None if is_new else UNKNOWN


def _edit(recorded: Recorded) -> Step:
    return _edited(recorded, [_one_edit(recorded.arguments)])


def _multi_edit(recorded: Recorded) -> Step:
    edits = [_one_edit(fields_of(one)) for one in items_of(recorded.arguments.get("edits"))]
    if not edits:
        raise NotPerformed("its argument 'edits' is not a list of edits")
    return _edited(recorded, edits)


def _one_edit(fields: Mapping[str, object]) -> Edit:
    old, new = fields.get("old_string", ""), fields.get("new_string", "")
    if not isinstance(old, str) or not isinstance(new, str):
        raise NotPerformed("its argument 'old_string' or 'new_string' is not text")
    return Edit(old, new, fields.get("replace_all") in (True, "true"))


def _edited(recorded: Recorded, edits: list[Edit]) -> Step:
    path, done = _path(recorded), succeeded(recorded)
    if done is False:
        return Step(_tool(edits), _arguments(path, edits), done, {path: _before_failure(recorded)})
    result = recorded.result
    carried_out = _carried_out(result, edits)
    hunks = read_structured(result.get("structuredPatch"))
    # With nothing to replace, the edit succeeds only if the file is missing or empty.
    before = _original(result, is_new=not edits[0].old)

    def after(texts: Texts) -> Texts:
        return {path: recorded_outcome(texts[path], carried_out, hunks)[0]}

    def arguments_for(texts: Texts) -> dict[str, object]:
        found = recorded_outcome(texts[path], carried_out, hunks)[1]
        return _arguments(path, found)

    found = skeleton_of(hunks)
    skeletons = {} if found is None else {path: found}
    arguments = _arguments(path, carried_out)
    return Step(
        _tool(edits),
        arguments,
        done,
        {path: before},
        after,
        arguments_for,
        skeletons=skeletons,
        hunks={} if hunks is None else {path: hunks},
        edits=tuple(carried_out),
    )


def _carried_out(result: Mapping[str, object], asked: list[Edit]) -> list[Edit]:
    """Return the edits as carried out: the user may have changed them, and the quotes are those of the file."""
    old, new = result.get("oldString"), result.get("newString")
    if len(asked) == 1 and isinstance(old, str) and isinstance(new, str):
        replace_all = result.get("replaceAll")
        return [Edit(old, new, replace_all if isinstance(replace_all, bool) else asked[0].replace_all)]
    edits = [fields_of(one) for one in items_of(result.get("edits"))]
    return [_one_edit(one) for one in edits] if len(edits) == len(asked) else asked


def _tool(edits: list[Edit]) -> str:
    return "edit_file" if len(edits) == 1 else "multi_edit"


def _arguments(path: str, edits: tuple[Edit, ...] | list[Edit]) -> dict[str, object]:
    fields: list[dict[str, object]] = [
        {"old_string": edit.old, "new_string": edit.new, "replace_all": edit.replace_all} for edit in edits
    ]
    return {"path": path, **fields[0]} if len(fields) == 1 else {"path": path, "edits": fields}


def _notebook(recorded: Recorded) -> Step:
    path = _path(recorded, "notebook_path")
    if succeeded(recorded) is False:
        raise NotPerformed("notebook cells cannot be edited here")
    updated = recorded.result.get("updated_file")
    raise NotPerformed("notebook cells cannot be edited here", {path: updated if isinstance(updated, str) else UNKNOWN})


def _search(tool: str, renamed: Mapping[str, str], recorded: Recorded) -> Step:
    return search_step(recorded, tool, succeeded(recorded), renamed)


def _grep(recorded: Recorded) -> Step:
    step = _search("grep", {"pattern": "pattern", "glob": "glob", "-i": "case_insensitive"}, recorded)
    limit = whole(recorded.arguments.get("head_limit"))
    if limit is not None and recorded.arguments.get("output_mode") == "content":
        step.arguments["max_results"] = limit
    return step


def _bash(recorded: Recorded) -> Step:
    timeout = whole(recorded.arguments.get("timeout"))
    seconds = None if timeout is None else timeout / 1000
    return shell_step(recorded.text("command"), recorded.path("."), succeeded(recorded), timeout=seconds)


_TOOLS: Mapping[str, Callable[[Recorded], Step]] = {
    "Read": _read,
    "Write": _write,
    "Edit": _edit,
    "MultiEdit": _multi_edit,
    "NotebookEdit": _notebook,
    "Glob": partial(_search, "glob", {"pattern": "pattern"}),
    "Grep": _grep,
    "LS": partial(_search, "ls", {}),
    "Bash": _bash,
}

PROGRAM = Program(_TOOLS, succeeded, _WITHOUT_FILES)
