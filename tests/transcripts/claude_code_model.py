"""A small model of Claude Code: a disk, its file tools, and the lines that it records."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from attrs import define, field

ROOT = "/home/ann/shop"
Line = dict[str, Any]


class Refused(Exception):
    """A call that the program answers with an error."""


@define
class Ways:
    """The differences between versions."""

    with_result: bool = True
    with_original: bool = True
    with_patch: bool = True
    tabs_as_spaces: bool = True
    numbered_by_arrow: bool = True


@define
class ClaudeCode:
    """The program on a disk; `lines` is its session file."""

    ways: Ways = field(factory=Ways)
    disk: dict[str, bytes] = field(factory=dict[str, bytes])
    lines: list[Line] = field(factory=list[Line])
    outcomes: list[bool] = field(factory=list[bool])
    calls: int = 0

    def write(self, path: str, content: str) -> None:
        old = self.read_text(path)
        self.disk[path] = content.encode()
        result: Line = {
            "type": "create" if old is None else "update",
            "filePath": f"{ROOT}/{path}",
            "content": content,
            "structuredPatch": [] if old is None else self.hunks(old, content),
        }
        if self.ways.with_original:
            result["originalFile"] = old
        self.record("Write", {"file_path": f"{ROOT}/{path}", "content": content}, result, f"wrote {path}")

    def edit(self, path: str, old: str, new: str, replace_all: bool) -> None:
        arguments = {"file_path": f"{ROOT}/{path}", "old_string": old, "new_string": new, "replace_all": replace_all}
        try:
            before = self.read_text(path)
            actual, text = self.edited(before, old, new, replace_all)
        except Refused as error:
            self.fail("Edit", arguments, str(error))
            return
        self.save(path, text)
        result: Line = {"filePath": f"{ROOT}/{path}", "oldString": actual, "newString": new}
        if self.ways.with_original:
            result["originalFile"] = before
        if self.ways.with_patch:
            result["structuredPatch"] = self.hunks(before or "", text)
        result |= {"userModified": False, "replaceAll": replace_all}
        self.record("Edit", arguments, result, "The file has been updated.")

    def multi_edit(self, path: str, edits: Sequence[tuple[str, str, bool]]) -> None:
        told = [{"old_string": old, "new_string": new, "replace_all": every} for old, new, every in edits]
        arguments = {"file_path": f"{ROOT}/{path}", "edits": told}
        try:
            before = text = self.read_text(path)
            for old, new, every in edits:
                _, text = self.edited(text, old, new, every)
        except Refused as error:
            self.fail("MultiEdit", arguments, str(error))
            return
        assert text is not None
        self.save(path, text)
        result: Line = {"filePath": f"{ROOT}/{path}", "edits": told, "userModified": False}
        if self.ways.with_original:
            result["originalFileContents"] = before
        if self.ways.with_patch:
            result["structuredPatch"] = self.hunks(before or "", text)
        self.record("MultiEdit", arguments, result, "Applied edits.")

    def read(self, path: str, offset: int | None = None, limit: int | None = None) -> None:
        arguments: Line = {"file_path": f"{ROOT}/{path}"}
        arguments |= {} if offset is None else {"offset": offset}
        arguments |= {} if limit is None else {"limit": limit}
        text = self.read_text(path)
        if text is None:
            self.fail("Read", arguments, "File does not exist.")
            return
        lines = text.removeprefix("\ufeff").split("\n")
        first = offset or 1
        shown = lines[first - 1 :][:limit]
        file = {
            "filePath": f"{ROOT}/{path}",
            "content": "\n".join(shown),
            "numLines": len(shown),
            "startLine": first,
            "totalLines": len(lines),
        }
        mark = "\u2192" if self.ways.numbered_by_arrow else "\t"
        numbered = "\n".join(f"{number:>6}{mark}{line}" for number, line in enumerate(shown, first))
        self.record("Read", arguments, {"type": "text", "file": file}, numbered)

    def change_outside(self, path: str, data: bytes) -> None:
        """Change a file as a command would, without recording anything."""
        self.disk[path] = data
        self.record("Bash", {"command": "make"}, {"stdout": "", "stderr": "", "interrupted": False}, "")
        self.outcomes.pop()

    def read_text(self, path: str) -> str | None:
        data = self.disk.get(path)
        return None if data is None else data.decode().replace("\r\n", "\n")

    def save(self, path: str, text: str) -> None:
        head = self.disk.get(path, b"").decode()[:4096]
        if head.count("\r\n") > len(re.findall("(?<!\r)\n", head)):
            text = text.replace("\n", "\r\n")
        self.disk[path] = text.encode()

    def edited(self, text: str | None, old: str, new: str, replace_all: bool) -> tuple[str, str]:
        if old == new:
            raise Refused("No changes to make: old_string and new_string are exactly the same.")
        if old == "":
            if text is not None and text.strip():
                raise Refused("Cannot create new file - file already exists.")
            return "", new
        if text is None:
            raise Refused("File does not exist.")
        actual = self.actual(text, old)
        count = len(text.split(actual)) - 1
        if count > 1 and not replace_all:
            raise Refused(f"Found {count} matches of the string to replace, but replace_all is false.")
        put = self.quoted(actual, new) if actual != old else new
        wanted = actual
        if put == "" and not actual.endswith("\n") and actual + "\n" in text:
            wanted = actual + "\n"
        made = text.replace(wanted, put) if replace_all else text.replace(wanted, put, 1)
        if made == text:
            raise Refused("Original and edited file match exactly. Failed to apply edit.")
        return actual, made

    def actual(self, text: str, old: str) -> str:
        if old in text:
            return old
        at = self.straight(text).find(self.straight(old))
        if at < 0:
            raise Refused("String to replace not found in file.")
        return text[at : at + len(old)]

    def straight(self, text: str) -> str:
        return re.sub("[\u201c\u201d]", '"', re.sub("[\u2018\u2019]", "'", text))

    def quoted(self, actual: str, new: str) -> str:
        if re.search("[\u201c\u201d]", actual):
            new = re.sub('(^|[\\s(\\[{\u2014\u2013])"', "\\1\u201c", new).replace('"', "\u201d")
        return new

    def hunks(self, old: str, new: str) -> list[Line]:
        if self.ways.tabs_as_spaces:
            old, new = (re.sub(r"(?m)^\t+", lambda tabs: "  " * len(tabs[0]), text) for text in (old, new))
        return structured(old, new)

    def fail(self, tool: str, arguments: Line, reason: str) -> None:
        self.record(tool, arguments, f"Error: {reason}", f"<tool_use_error>{reason}</tool_use_error>", is_error=True)

    def record(self, tool: str, arguments: Line, result: Line | str, content: str, *, is_error: bool = False) -> None:
        self.calls += 1
        id = f"toolu_{self.calls}"
        self.outcomes.append(not is_error)
        envelope = {"sessionId": "s1", "cwd": ROOT, "version": "2.0.0", "isSidechain": False}
        use = {"type": "tool_use", "id": id, "name": tool, "input": arguments}
        answer: Line = {"type": "tool_result", "tool_use_id": id, "content": content}
        answer |= {"is_error": True} if is_error else {}
        self.lines.append(
            {"type": "assistant", "uuid": f"a{id}", **envelope, "message": {"role": "assistant", "content": [use]}}
        )
        line = {"type": "user", "uuid": f"b{id}", **envelope, "message": {"role": "user", "content": [answer]}}
        if self.ways.with_result:
            line["toolUseResult"] = result
        self.lines.append(line)


def structured(old: str, new: str) -> list[Line]:
    """Return the hunks between two texts, with three lines of context, as Claude Code writes them."""
    one, other = _kept(old), _kept(new)
    found: list[Line] = []
    for group in difflib.SequenceMatcher(None, one, other, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for kind, i, j, k, m in group:
            if kind == "equal":
                lines += _marked(" ", one[i:j])
            else:
                lines += [*_marked("-", one[i:j]), *_marked("+", other[k:m])]
        (_, i, _, k, _), (_, _, j, _, m) = group[0], group[-1]
        found.append(
            {
                "oldStart": i + (j > i),
                "oldLines": j - i,
                "newStart": k + (m > k),
                "newLines": m - k,
                "lines": lines,
            }
        )
    return found


def _kept(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _marked(mark: str, lines: Iterable[str]) -> list[str]:
    marked: list[str] = []
    for line in lines:
        marked.append(mark + line.removesuffix("\n"))
        if not line.endswith("\n"):
            marked.append("\\ No newline at end of file")
    return marked


def as_jsonl(lines: Iterable[Line]) -> bytes:
    """Write lines as a session file."""
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
