"""The output of a call in Codex's files: text, JSON in text, or header lines before the output."""

from __future__ import annotations

import re

from weakfs.transcripts.json_lines import NotJson, as_list, as_object, parse_json

# `Exit code: 0`, or `Process exited with code 0`, in the lines before `Output:`.
_EXIT = re.compile(r"^(?:Exit code:|Process exited with code) *(-?\d+)", re.MULTILINE)
_HEAD = 500
_FAILURES = (
    "apply_patch verification failed",
    "failed to parse",
    "execution error",
    "exec_command failed",
    "failed in sandbox",
    "aborted by user",
    "aborted",
    "patch rejected",
    "unsupported call",
    "exec rejected",
    "rejected by user",
    "command timed out",
    "failed for `",
)
_SUCCESS = ("success. updated the following files", "done!")


def read_output(value: object) -> tuple[str, bool | None]:
    """Return the text of an output, and whether it reports a failure; None if it does not say."""
    if isinstance(value, str):
        return _read_text(value)
    parts = as_list(value)
    if parts is not None:
        texts = (part.get("text") for part in map(as_object, parts) if part is not None)
        return _read_text("\n".join(text for text in texts if isinstance(text, str)))
    fields = as_object(value)
    if fields is None:
        return "", None
    text, is_error = read_output(_first(fields.get("output"), fields.get("content"), fields.get("body")))
    metadata = as_object(fields.get("metadata")) or {}
    code, success = metadata.get("exit_code"), fields.get("success")
    if isinstance(code, int):
        return text, code != 0
    return text, not success if isinstance(success, bool) else is_error


def _read_text(text: str) -> tuple[str, bool | None]:
    if text.startswith("{"):
        value = parse_json(text)
        fields = None if isinstance(value, NotJson) else as_object(value)
        if fields is not None and isinstance(fields.get("output"), str):
            output = str(fields["output"])
            metadata = as_object(fields.get("metadata")) or {}
            code = metadata.get("exit_code")
            return output, code != 0 if isinstance(code, int) else _failure_in(output)
    head, mark, rest = text.partition("Output:\n")
    if mark and len(head) <= _HEAD and (found := _EXIT.search(head)):
        return rest, int(found[1]) != 0
    if found := _EXIT.search(text[:_HEAD]):
        return text, int(found[1]) != 0
    return text, _failure_in(text)


def _failure_in(text: str) -> bool | None:
    start = text[:_HEAD].lstrip().lower()
    if start.startswith(_SUCCESS):
        return False
    return True if start.startswith(_FAILURES) else None


def _first(*values: object) -> object:
    return next((value for value in values if value is not None), None)
