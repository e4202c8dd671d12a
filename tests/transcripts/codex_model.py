"""A small model of Codex: a disk, its `apply_patch`, and the lines that it records."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from attrs import define, field, frozen

ROOT = "/home/ann/shop"
Line = dict[str, Any]
Form = Literal["custom", "function", "heredoc", "heredoc-text", "exec", "local"]


class Refused(Exception):
    """A patch that is answered with an error."""


@frozen
class Chunk:
    """Lines with their marks, and perhaps an anchor."""

    lines: tuple[str, ...]
    anchor: str | None = None
    at_end: bool = False

    def text(self) -> str:
        head = "@@" if self.anchor is None else f"@@ {self.anchor}"
        end = ["*** End of File"] if self.at_end else []
        return "\n".join([head, *self.lines, *end])


@frozen
class Add:
    path: str
    lines: tuple[str, ...]

    def text(self) -> str:
        return "\n".join([f"*** Add File: {self.path}", *("+" + line for line in self.lines)])


@frozen
class Delete:
    path: str

    def text(self) -> str:
        return f"*** Delete File: {self.path}"


@frozen
class Update:
    path: str
    chunks: tuple[Chunk, ...]
    move_to: str | None = None

    def text(self) -> str:
        move = [] if self.move_to is None else [f"*** Move to: {self.move_to}"]
        return "\n".join([f"*** Update File: {self.path}", *move, *(chunk.text() for chunk in self.chunks)])


Operation = Add | Delete | Update


@define
class Codex:
    """The program on a disk; `lines` is its rollout file."""

    with_event: bool = True
    disk: dict[str, bytes] = field(factory=dict[str, bytes])
    lines: list[Line] = field(factory=list[Line])
    outcomes: list[bool] = field(factory=list[bool])

    def __attrs_post_init__(self) -> None:
        self.write("session_meta", {"id": "r1", "cwd": ROOT, "originator": "codex_cli_rs"})
        self.write("turn_context", {"cwd": ROOT, "approval_policy": "never", "sandbox_policy": {"mode": "read-only"}})

    def apply(self, operations: Sequence[Operation], form: Form) -> None:
        patch = "\n".join(["*** Begin Patch", *(one.text() for one in operations), "*** End Patch"])
        call_id = f"call_{len(self.lines)}"
        self.write("response_item", call(call_id, patch, form))
        try:
            disk, changes = self.patched(operations)
        except Refused as error:
            self.answer(call_id, form, f"apply_patch verification failed: {error}", 1)
            self.outcomes.append(False)
            return
        self.disk = disk
        if self.with_event:
            event = {"type": "patch_apply_end", "call_id": call_id, "success": True, "changes": changes, "stderr": ""}
            self.write("event_msg", event)
        self.answer(call_id, form, "Success. Updated the following files:\nM a\n", 0)
        self.outcomes.append(True)

    def show(self, path: str) -> None:
        call_id = f"call_{len(self.lines)}"
        arguments = json.dumps({"command": ["bash", "-lc", f"cat {path}"], "workdir": ROOT})
        item = {"type": "function_call", "name": "shell", "arguments": arguments, "call_id": call_id}
        self.write("response_item", item)
        if path in self.disk:
            self.answer(call_id, "function", self.disk[path].decode(), 0)
        else:
            self.answer(call_id, "function", f"cat: {path}: No such file or directory\n", 1)

    def answer(self, call_id: str, form: Form, text: str, code: int) -> None:
        kind = "custom_tool_call_output" if form == "custom" else "function_call_output"
        if form == "exec":
            output = f"Chunk ID: ab12\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{text}"
        else:
            output = json.dumps({"output": text, "metadata": {"exit_code": code, "duration_seconds": 0.1}})
        self.write("response_item", {"type": kind, "call_id": call_id, "output": output})

    def write(self, kind: str, payload: Line) -> None:
        self.lines.append({"timestamp": "2026-04-29T20:35:28Z", "type": kind, "payload": payload})

    def patched(self, operations: Sequence[Operation]) -> tuple[dict[str, bytes], Line]:
        disk, changes = dict(self.disk), dict[str, Any]()
        for one in operations:
            if isinstance(one, Add):
                text = "".join(line + "\n" for line in one.lines)
                disk[one.path] = text.encode()
                changes[f"{ROOT}/{one.path}"] = {"type": "add", "content": text}
                continue
            if one.path not in disk:
                raise Refused(
                    f"Failed to read file to update {ROOT}/{one.path}: No such file or directory (os error 2)"
                )
            old = disk[one.path].decode()
            if isinstance(one, Delete):
                del disk[one.path]
                changes[f"{ROOT}/{one.path}"] = {"type": "delete", "content": old}
                continue
            new = updated(old, one.chunks)
            if one.move_to is not None:
                del disk[one.path]
            disk[one.move_to or one.path] = new.encode()
            changes[f"{ROOT}/{one.path}"] = {
                "type": "update",
                "unified_diff": unified(old, new),
                "move_path": None if one.move_to is None else f"{ROOT}/{one.move_to}",
            }
        return disk, changes


def call(call_id: str, patch: str, form: Form) -> Line:
    """Return the item of a call in one of its forms."""
    heredoc = f"apply_patch <<'EOF'\n{patch}\nEOF\n"
    if form == "custom":
        return {
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": call_id,
            "name": "apply_patch",
            "input": patch,
        }
    if form == "local":
        action = {"type": "exec", "command": ["apply_patch", patch], "working_directory": ROOT}
        return {"type": "local_shell_call", "status": "completed", "call_id": call_id, "action": action}
    name, arguments = {
        "function": ("apply_patch", {"input": patch}),
        "heredoc": ("shell", {"command": ["bash", "-lc", heredoc], "workdir": ROOT}),
        "heredoc-text": ("shell_command", {"command": f"cd {ROOT} && {heredoc}"}),
        "exec": ("exec_command", {"cmd": heredoc, "workdir": ROOT}),
    }[form]
    return {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": call_id}


def updated(text: str, chunks: Iterable[Chunk]) -> str:
    """Return a text with chunks applied as Codex does it."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    cursor = 0
    found: list[tuple[int, int, list[str]]] = []
    for chunk in chunks:
        if chunk.anchor is not None:
            at = seek(lines, [chunk.anchor], cursor, False)
            if at is None:
                raise Refused(f"Failed to find context '{chunk.anchor}'")
            cursor = at + 1
        old = [line[1:] for line in chunk.lines if line[:1] != "+"]
        new = [line[1:] for line in chunk.lines if line[:1] != "-"]
        if not old:
            end = len(lines) - 1 if lines and lines[-1] == "" else len(lines)
            found.append((end, 0, new))
            continue
        at = seek(lines, old, cursor, chunk.at_end)
        if at is None and old[-1] == "":
            old.pop()
            if new and new[-1] == "":
                new.pop()
            at = seek(lines, old, cursor, chunk.at_end)
        if at is None:
            raise Refused("Failed to find expected lines in the file:\n" + "\n".join(old))
        found.append((at, len(old), new))
        cursor = at + len(old)
    for at, count, new in sorted(found, key=lambda one: one[0])[::-1]:
        lines[at : at + count] = new
    if not lines or lines[-1] != "":
        lines.append("")
    return "\n".join(lines)


def seek(lines: list[str], wanted: list[str], start: int, at_end: bool) -> int | None:
    """Find lines from a position on, more and more loosely."""
    if not wanted:
        return start
    if len(wanted) > len(lines):
        return None
    first = len(lines) - len(wanted) if at_end else start
    for fold in (str, str.rstrip, str.strip, folded):
        for at in range(first, len(lines) - len(wanted) + 1):
            if [fold(line) for line in lines[at : at + len(wanted)]] == [fold(line) for line in wanted]:
                return at
    return None


def folded(line: str) -> str:
    """Return a line with plain characters for typographic ones."""
    table: dict[str, str | int | None] = {
        "\u201c": '"',
        "\u201d": '"',
        "\u2018": "'",
        "\u2019": "'",
        "\u2013": "-",
        "\u2014": "-",
        "\xa0": " ",
    }
    return line.strip().translate(str.maketrans(table))


def unified(old: str, new: str) -> str:
    """Return the difference as Codex writes it: one line of context, no names."""
    one, other = old.splitlines(keepends=True), new.splitlines(keepends=True)
    if not set(old + new).isdisjoint("\r\x0b\x0c\x1c\x85\u2028"):
        one, other = [[line + "\n" for line in text.split("\n")] for text in (old, new)]
        for side in (one, other):
            side[-1] = side[-1][:-1]
            if not side[-1]:
                side.pop()
    made: list[str] = []
    for line in list(difflib.unified_diff(one, other, n=1))[2:]:
        made.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(made)
