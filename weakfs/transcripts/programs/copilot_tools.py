"""Copilot CLI's tools: our equivalent of each, and what its session files say about the files.

They record less than those of other programs: no text from before a change, and for a read only the lines that the
model was shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from weakfs.transcripts.json_lines import items_of
from weakfs.transcripts.programs.program import Program, said_in, shell_step, text_before_failure
from weakfs.transcripts.programs.recorded_fields import Recorded, whole
from weakfs.transcripts.reconstruction.claude_edit_rules import Edit
from weakfs.transcripts.reconstruction.file_text import UNKNOWN, Text
from weakfs.transcripts.reconstruction.numbered_text import numbered_lines
from weakfs.transcripts.reconstruction.partial_text import Part
from weakfs.transcripts.reconstruction.recorded_calls import Step, Texts

_LINE = re.compile(r"(\d{1,9})\. ?(.*)", re.DOTALL)
_REFUSALS = ("denied", "rejected", "permission", "aborted", "cancelled", "canceled", "blocked", "interrupted")
_MISSING = ("does not exist", "no such file or directory")
# Tools that change no file and start nothing that does; for any other tool this is unknown.
_WITHOUT_FILES = frozenset(
    {
        "report_intent",
        "update_todo",
        "ask_user",
        "skill",
        "web_fetch",
        "web_search",
        "grep",
        "glob",
        "read_bash",
        "list_bash",
        "read_powershell",
        "list_powershell",
        "read_agent",
        "list_agents",
    }
)


def _name_of(recorded: Recorded) -> str:
    tool = recorded.call.tool
    if tool != "str_replace_editor":
        return tool
    # A single tool in earlier versions, whose commands became separate tools.
    return {"str_replace": "edit", "insert": tool}.get(command := recorded.text("command"), command)


def succeeded(recorded: Recorded) -> bool | None:
    """Return whether the call succeeded, `None` if the recording does not say."""
    error = recorded.call.recorded_error
    return None if error is None else not error


def _before_failure(recorded: Recorded) -> Text:
    return text_before_failure(said_in(recorded.call.recorded), refusals=_REFUSALS, missing=_MISSING)


def _view(recorded: Recorded) -> Step:
    path = recorded.path(recorded.text("path"))
    arguments: dict[str, object] = {"path": path}
    if not succeeded(recorded):
        before = UNKNOWN if succeeded(recorded) is None else _before_failure(recorded)
        return Step("read_file", arguments, succeeded(recorded), {path: before})
    shown = numbered_lines(recorded.call.recorded or "", _LINE)
    if shown is None or shown[0] < 1:
        unchecked = "its result is not recorded as the text of a file"
        return Step("read_file", arguments, True, {path: UNKNOWN}, unchecked=unchecked, needs=path)
    first, lines = shown
    arguments |= {"offset": first, "limit": len(lines)}
    text = "\n".join(lines)
    if items_of(recorded.arguments.get("view_range")) or first != 1:
        return Step("read_file", arguments, True, {path: UNKNOWN}, shown=text, part=Part(first, lines))
    return Step("read_file", arguments, True, {path: text}, shown=text, is_before_exact=False)


def _create(recorded: Recorded) -> Step:
    path, content = recorded.path(recorded.text("path")), recorded.text("file_text")
    done = succeeded(recorded)
    before = _before_failure(recorded) if done is False else UNKNOWN
    return Step("write_file", {"path": path, "content": content}, done, {path: before}, lambda _: {path: content})


def _edit(recorded: Recorded) -> Step:
    path, old, new = recorded.path(recorded.text("path")), recorded.text("old_str"), recorded.text("new_str")
    done = succeeded(recorded)
    before = _before_failure(recorded) if done is False else UNKNOWN

    def after(texts: Texts) -> Texts:
        text = texts[path]
        # Which of several places was edited is not recorded.
        is_clear = isinstance(text, str) and bool(old) and text.count(old) == 1
        return {path: text.replace(old, new) if is_clear and isinstance(text, str) else UNKNOWN}

    def arguments_for(texts: Texts) -> dict[str, object]:
        text = texts[path]
        if isinstance(text, str) and old and not new:
            # Our tool also deletes the line break after the deleted text, unless more is quoted.
            at = text.find(old) + len(old)
            return _arguments(path, old + text[at : at + 1], text[at : at + 1])
        return _arguments(path, old, new)

    edits = (Edit(old, new),)
    return Step("edit_file", _arguments(path, old, new), done, {path: before}, after, arguments_for, edits=edits)


def _arguments(path: str, old: str, new: str) -> dict[str, object]:
    return {"path": path, "old_string": old, "new_string": new, "replace_all": False}


def _shell(recorded: Recorded) -> Step:
    timeout = whole(recorded.arguments.get("timeout"))
    is_reader = None if recorded.call.tool == "bash" else False
    command, where = recorded.text("command"), recorded.path(".")
    return shell_step(command, where, succeeded(recorded), timeout=timeout, is_reader=is_reader)


_TOOLS: Mapping[str, Callable[[Recorded], Step]] = {
    "view": _view,
    "create": _create,
    "edit": _edit,
    "bash": _shell,
    "powershell": _shell,
}

PROGRAM = Program(_TOOLS, succeeded, _WITHOUT_FILES, _name_of)
