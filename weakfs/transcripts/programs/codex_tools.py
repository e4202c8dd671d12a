"""Codex's tools: our equivalent of each, and what its rollout files say about the files."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from functools import partial

import attrs

from weakfs.class_decorators import frozen
from weakfs.editing import PatchError
from weakfs.editing.patches.formats.v4a import parse_v4a
from weakfs.editing.patches.operations import UpdateFile
from weakfs.transcripts.json_lines import fields_of
from weakfs.transcripts.programs.program import Program, read_arguments, said_in, search_step, shell_step
from weakfs.transcripts.programs.recorded_fields import OutsideRoot, Recorded, whole
from weakfs.transcripts.programs.shell_commands import (
    PatchCommand,
    ShowCommand,
    in_directory,
    read_command,
    script_of,
)
from weakfs.transcripts.reconstruction.changed_lines import Skeleton, skeleton_of
from weakfs.transcripts.reconstruction.file_text import UNKNOWN, Text
from weakfs.transcripts.reconstruction.numbered_text import read_numbered
from weakfs.transcripts.reconstruction.partial_text import Part
from weakfs.transcripts.reconstruction.recorded_calls import NotPerformed, Step, Texts
from weakfs.transcripts.reconstruction.recorded_hunks import Hunk, apply_hunks, read_unified

_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "
_HEADS = (_ADD, _DELETE, _UPDATE, _MOVE)
# Markers that replace a part of a command's output.
_SHORTENED = ("tokens truncated", "chars truncated", "[... omitted", "Total output lines:")
_REFUSALS = ("rejected", "aborted", "sandbox", "approval", "permission denied", "outside of the project")
_MISSING = ("no such file or directory", "failed to read file to update")
# Messages of patches that do not fit.
_MISFITS = (*_MISSING, "failed to find context", "failed to find expected lines", "verification failed")
# Tools that change no file and start nothing that does; for any other tool this is unknown.
_WITHOUT_FILES = frozenset(
    {
        "update_plan",
        "view_image",
        "web_search",
        "request_user_input",
        "list_mcp_resources",
        "list_mcp_resource_templates",
        "read_mcp_resource",
    }
)


def succeeded(recorded: Recorded) -> bool | None:
    """Return whether the call succeeded, `None` if the recording does not say."""
    success, error = recorded.result.get("success"), recorded.call.recorded_error
    if isinstance(success, bool):
        return success
    code = recorded.result.get("exit_code")
    if isinstance(code, int):
        return code == 0
    return None if error is None else not error


def _patch_item(recorded: Recorded) -> Step:
    for name in ("input", "patch"):
        if isinstance(recorded.arguments.get(name), str):
            return _patch(recorded, recorded.text(name), recorded.optional_text("workdir"), succeeded(recorded))
    return _command(recorded)


def _command(recorded: Recorded) -> Step:
    arguments = recorded.arguments
    command = script_of(arguments)
    if not command:
        raise NotPerformed("its arguments contain no command")
    workdir = recorded.optional_text("workdir") or recorded.optional_text("working_directory")
    found = read_command(command)
    if isinstance(found, PatchCommand):
        done = succeeded(recorded)
        if not found.is_all and recorded.result.get("success") is None:
            # The exit status of the whole depends on the other commands in it.
            done = "success. updated the following files" in (recorded.call.recorded or "").lower() or None
        patched = _patch(recorded, found.patch, in_directory(workdir, found.workdir), done)
        return patched if found.is_all else attrs.evolve(patched, runs_program=True)
    if isinstance(found, ShowCommand):
        step = _show(recorded, found, in_directory(workdir, found.workdir))
        if step is not None:
            return step
    script = command if isinstance(command, str) else shlex.join(command)
    where = recorded.path(workdir or ".")
    timeout = whole(arguments.get("timeout_ms"))
    return shell_step(script, where, succeeded(recorded), timeout=None if timeout is None else timeout / 1000)


def _show(recorded: Recorded, command: ShowCommand, workdir: str | None) -> Step | None:
    """Reconstruct a file, or a part of it, from the output of a command; `None` if something is omitted."""
    whole_output = recorded.result.get("aggregated_output")
    text = whole_output if isinstance(whole_output, str) else recorded.call.recorded or ""
    if not succeeded(recorded) or any(mark in text for mark in _SHORTENED):
        return None
    if command.is_numbered:
        found = read_numbered(text)
        if found is None or found[0] != 1:
            return None
        text = found[1] + "\n" * text.endswith("\n")
    path = recorded.path(command.path, workdir=workdir)
    count = text.count("\n") + (not text.endswith("\n"))
    arguments: dict[str, object] = {"path": path, "limit": max(count, 1)}
    if command.last is None or (command.first == 1 and count < command.last):
        return Step("read_file", arguments, True, {path: text}, shown=text, is_before_exact=False)
    wanted = command.last - command.first + 1
    if not text or count > wanted:
        return None
    lines = text.split("\n")
    if count == wanted and not lines[-1]:
        # The file may continue, or end with this line break.
        lines.pop()
    total = command.first - 1 + len(lines) if count < wanted else None
    arguments["offset"] = command.first
    return Step(
        "read_file", arguments, True, {path: UNKNOWN}, shown=text, part=Part(command.first, tuple(lines), total)
    )


@frozen
class _Change:
    """The change that a patch made to one file; `moved_to` is its new path."""

    path: str
    before: Text
    after: Callable[[Text], Text]
    moved_to: str | None = None
    is_new: bool = False
    hunks: tuple[Hunk, ...] | None = None


def _patch(recorded: Recorded, patch: str, workdir: str | None, done: bool | None) -> Step:
    changes, outside = _recorded_changes(recorded)
    try:
        rewritten, named = _below_root(recorded, patch, workdir)
    except OutsideRoot as error:
        raise OutsideRoot(str(error), _outcome(changes, done)) from None
    if outside is not None:
        raise OutsideRoot(str(outside), _outcome(changes, done)) from None
    if done is False:
        return _failed_patch(recorded, rewritten, named)
    is_silent = not changes
    changes = changes or named
    return Step(
        "apply_patch",
        {"patch": rewritten},
        done,
        _before(changes),
        partial(_after, changes),
        is_silent=is_silent,
        skeletons=_skeletons(changes, rewritten) if done else {},
        hunks={change.path: change.hunks for change in changes if change.hunks is not None and not change.moved_to},
    )


def _skeletons(changes: list[_Change], patch: str) -> dict[str, Skeleton]:
    """Reconstruct what the recorded differences and the patch show of the files that it updates."""
    if all(change.hunks is None for change in changes):
        return {}
    try:
        operations = parse_v4a(patch, as_codex=True)
    except PatchError:
        return {}
    contexts = {one.path: [hunk.old for hunk in one.hunks] for one in operations if isinstance(one, UpdateFile)}
    found = {change.path: skeleton_of(change.hunks, contexts.get(change.path, ())) for change in changes}
    return {path: skeleton for path, skeleton in found.items() if skeleton is not None}


def _before(changes: list[_Change]) -> dict[str, Text]:
    """Return what is known about the files that must exist; a new file may replace anything."""
    return {change.path: change.before for change in reversed(changes) if not change.is_new}


def _failed_patch(recorded: Recorded, patch: str, named: list[_Change]) -> Step:
    said = said_in(recorded.call.recorded, recorded.result.get("stderr"))
    unknown = _before(named)
    if "verification failed" not in said and any(refusal in said for refusal in _REFUSALS):
        raise NotPerformed("it was refused, or ended before it was done", unknown)
    if recorded.result.get("success") is False and not (len(named) == 1 and any(misfit in said for misfit in _MISFITS)):
        # The call ended in the middle: the changes made so far remain, and are not recorded.
        raise NotPerformed("it ended before it was done", unknown)
    only = len(named) == 1 and any(missing in said for missing in _MISSING)
    return Step("apply_patch", {"patch": patch}, False, dict.fromkeys(unknown) if only else unknown)


def _outcome(changes: list[_Change], done: bool | None) -> Texts:
    """Return what is known about the files of a patch that is not run."""
    if done is False:
        return {}
    return _after(changes, {})


def _after(changes: list[_Change], before: Texts) -> Texts:
    found: dict[str, Text] = {}
    for change in changes:
        held = found.get(change.path, before.get(change.path, UNKNOWN))
        text = change.after(held)
        if change.moved_to is not None and change.moved_to != change.path:
            found[change.path], found[change.moved_to] = None, text
        else:
            found[change.path] = text
    return found


def _recorded_changes(recorded: Recorded) -> tuple[list[_Change], OutsideRoot | None]:
    """Read the event's `changes`: what became of each file.

    Files outside the root are omitted, and an error for one of them is returned.
    """
    found: list[_Change] = []
    outside: OutsideRoot | None = None
    for path, value in fields_of(recorded.result.get("changes")).items():
        fields = fields_of(value)
        try:
            change = _recorded_change(recorded, path, fields)
        except OutsideRoot as error:
            outside = error
        else:
            found += [] if change is None else [change]
    return found, outside


def _recorded_change(recorded: Recorded, path: str, fields: dict[str, object]) -> _Change | None:
    kind = fields.get("type")
    # The earliest versions wrote `{"add": {...}}`.
    for name in ("add", "delete", "update"):
        if kind is None and isinstance(fields.get(name), dict):
            kind, fields = name, fields_of(fields[name])
    content, diff, target = fields.get("content"), fields.get("unified_diff"), fields.get("move_path")
    mapped = recorded.path(path)
    if kind == "add" and isinstance(content, str):
        return _Change(mapped, UNKNOWN, partial(_given, content), is_new=True)
    if kind == "delete":
        return _Change(mapped, content if isinstance(content, str) else UNKNOWN, _gone)
    if kind != "update" or not isinstance(diff, str):
        return None
    hunks = read_unified(diff)

    def updated(held: Text) -> Text:
        if not isinstance(held, str):
            return UNKNOWN
        if not diff:
            return held
        made = None if hunks is None else apply_hunks(held, hunks)
        return UNKNOWN if made is None else made

    moved_to = recorded.path(target) if isinstance(target, str) else None
    return _Change(mapped, UNKNOWN, updated, moved_to, hunks=hunks)


def _below_root(recorded: Recorded, patch: str, workdir: str | None) -> tuple[str, list[_Change]]:
    """Return a patch with its paths mapped below our root, and its changes as far as the patch itself shows them."""
    lines = patch.split("\n")
    named: list[_Change] = []
    for at, line in enumerate(lines):
        head = next((head for head in _HEADS if line.startswith(head)), None)
        if head is None:
            continue
        path = recorded.path(line.removeprefix(head).strip(), workdir=workdir)
        lines[at] = head + path
        if head == _ADD:
            named.append(_Change(path, UNKNOWN, partial(_given, _added(lines, at + 1)), is_new=True))
        elif head == _DELETE:
            named.append(_Change(path, UNKNOWN, _gone))
        elif head == _UPDATE:
            named.append(_Change(path, UNKNOWN, _not_recorded))
        elif named:
            last = named.pop()
            named.append(_Change(last.path, UNKNOWN, last.after, path))
    return "\n".join(lines), named


def _added(lines: list[str], at: int) -> str:
    added: list[str] = []
    while at < len(lines) and lines[at].startswith("+"):
        added.append(lines[at][1:].removesuffix("\r") + "\n")
        at += 1
    return "".join(added)


def _given(text: Text, _: Text) -> Text:
    return text


def _gone(held: Text) -> Text:
    # The file existed, or the patch would have failed; if nothing is known about it, there is nothing to delete here.
    return UNKNOWN if held is UNKNOWN else None


def _not_recorded(_: Text) -> Text:
    return UNKNOWN


def _read_file(recorded: Recorded) -> Step:
    path = recorded.path(recorded.text("file_path"))
    arguments = read_arguments(recorded, path)
    unchecked = "its result is not recorded as it was in the file"
    return Step("read_file", arguments, succeeded(recorded), {path: UNKNOWN}, unchecked=unchecked, needs=path)


def _list_dir(recorded: Recorded) -> Step:
    return search_step(recorded, "ls", succeeded(recorded), {}, place="dir_path")


def _grep_files(recorded: Recorded) -> Step:
    return search_step(recorded, "grep", succeeded(recorded), {"pattern": "pattern", "include": "glob"})


_TOOLS: Mapping[str, Callable[[Recorded], Step]] = {
    "apply_patch": _patch_item,
    "shell": _command,
    "container.exec": _command,
    "shell_command": _command,
    "exec_command": _command,
    "local_shell": _command,
    "read_file": _read_file,
    "list_dir": _list_dir,
    "grep_files": _grep_files,
}

PROGRAM = Program(_TOOLS, succeeded, _WITHOUT_FILES)
