"""Context from earlier lines: the session's directories and working trees, and which lines are repetitions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from posixpath import join
from typing import Literal

import attrs
from attrs import field

from weakfs.class_decorators import define
from weakfs.transcripts.formats.codex import item_of
from weakfs.transcripts.formats.copilot import directory_of
from weakfs.transcripts.json_lines import fields_of, items_of
from weakfs.transcripts.records import Message, Source, TranscriptCall

PROGRAMS: Mapping[str, Literal["claude-code", "codex", "copilot"]] = {
    "claude-code": "claude-code",
    "codex": "codex",
    "copilot": "copilot",
}
# The field that identifies a line of each program's own files.
_IDENTITY = {"claude-code": "uuid", "copilot": "id"}

# How the oldest rollouts tell the model its directory; they have no field for it.
_TOLD = re.compile(r"<cwd>([^<\n]+)</cwd>|^Current working directory: *(\S[^\n]*)", re.MULTILINE)
_TOLD_WITHIN = 4000


@define
class SourceTracker:
    """The directories of the sessions in one file, according to its lines.

    A session's root is the directory in which it began; its later current directories are where relative paths start.
    """

    sources: dict[str, Source] = field(factory=dict[str, Source])
    _roots: dict[object, str] = field(factory=dict[object, str])
    _seen: set[str] = field(factory=set[str])
    # Keyed by the root of their session, in the order of first appearance.
    _directories: dict[str | None, dict[str, None]] = field(factory=dict[str | None, dict[str, None]])
    _worktrees: dict[str | None, dict[str, None]] = field(factory=dict[str | None, dict[str, None]])

    def begin(self) -> None:
        """Forget the state at the end of the last file, but not the lines that it contained."""
        self.sources.clear()

    def repeats(self, name: str, message: Message) -> bool:
        """Return whether a line occurred before: a resumed session repeats the lines that it continues."""
        uuid = message.get(_IDENTITY[name]) if name in _IDENTITY else None
        if not isinstance(uuid, str) or not uuid:
            return False
        if uuid in self._seen:
            return True
        self._seen.add(uuid)
        return False

    def follow(self, name: str, message: Message) -> None:
        """Update the session's directories from a line."""
        if name == "claude-code":
            self._follow_claude_code(message)
        elif name == "copilot":
            self._follow_copilot(message)
        elif name == "codex" or (name == "anthropic" and message.get("type") == "message"):
            self._follow_codex(message)

    def source(self, name: str) -> Source | None:
        """Return the source of a call on the last line followed; `None` for formats that belong to no program."""
        program = PROGRAMS.get(name)
        if program is None:
            return None
        found = self.sources.setdefault(name, Source(program))
        if found.cwd is not None and found.cwd != found.root:
            self._directories.setdefault(found.root, {})[found.cwd] = None
        return found

    def follow_call(self, name: str, call: TranscriptCall) -> None:
        """Update the directories from a call on the last line followed: where it works, and which ones it creates."""
        source = self.source(name)
        if source is None or call.arguments is None:
            return
        where = source.cwd
        for key in ("workdir", "working_directory"):
            value = call.arguments.get(key)
            if isinstance(value, str) and value:
                where = join(where or "", value)
                self._directories.setdefault(source.root, {})[where] = None
        for path in made_worktrees(call.arguments):
            self._worktrees.setdefault(source.root, {})[join(where or "", path)] = None

    def completed(self, source: Source) -> Source:
        """Return a source with all directories of its session, including those named later."""
        directories, worktrees = self._directories.get(source.root, ()), self._worktrees.get(source.root, ())
        return attrs.evolve(source, directories=tuple(directories), worktrees=tuple(worktrees))

    def _follow_claude_code(self, message: Message) -> None:
        session, cwd = message.get("sessionId", message.get("session_id")), message.get("cwd")
        last = self.sources.get("claude-code")
        if not isinstance(cwd, str) or not cwd:
            # Only some lines have all fields; the others belong to the line above.
            root = self._roots.get(session) if isinstance(session, str) else None
            if root is not None and (last is None or root != last.root):
                self.sources["claude-code"] = Source("claude-code", root, root)
            return
        if not isinstance(session, str):
            root = cwd if last is None or last.root is None else last.root
        else:
            root = self._roots.setdefault(session, cwd)
        if last is None or (last.root, last.cwd) != (root, cwd):
            self.sources["claude-code"] = Source("claude-code", root, cwd)

    def _follow_copilot(self, message: Message) -> None:
        cwd = directory_of(message)
        if cwd is not None:
            last = self.sources.get("copilot")
            is_first = last is None or last.root is None or message.get("type") == "session.start"
            self.sources["copilot"] = Source("copilot", cwd if last is None or is_first else last.root, cwd)

    def _follow_codex(self, message: Message) -> None:
        item, kind = item_of(message), message.get("type")
        cwd = item.get("cwd") if kind in ("session_meta", "turn_context") else None
        last = self.sources.get("codex")
        if kind == "session_meta" and isinstance(cwd, str) and cwd:
            self.sources["codex"] = Source("codex", cwd, cwd)
            return
        if kind != "turn_context" and item.get("type") == "message" and (last is None or last.root is None):
            cwd = _told_directory(item)
        if isinstance(cwd, str) and cwd and (last is None or last.cwd != cwd):
            root = cwd if last is None or last.root is None else last.root
            self.sources["codex"] = Source("codex", root, cwd)


def _told_directory(item: Message) -> str | None:
    for part in items_of(item.get("content")):
        text = fields_of(part).get("text")
        if isinstance(text, str) and (found := _TOLD.search(text[:_TOLD_WITHIN])):
            return (found[1] or found[2]).strip()
    return None


_ADD = re.compile(r"\bgit\b(?P<options>[^;&|\n]*?)\sworktree\s+add\s(?P<rest>[^;&|\n]+)")
_INTO = re.compile(r"-C\s+(\S+)")
_MOVED = re.compile(r"(?:^|&&|;|\n)\s*cd\s+([^\s;&|]+)")
# Options that take an argument.
_WITH_ARGUMENT = frozenset({"-b", "-B", "--reason"})


def made_worktrees(arguments: Mapping[str, object]) -> Iterator[str]:
    """Yield the paths at which the command in a call's arguments creates working trees, as it names them."""
    for name in ("command", "cmd", "script"):
        value = arguments.get(name)
        words = [word for word in items_of(value) if isinstance(word, str)]
        for script in [value] if isinstance(value, str) else [shlex.join(words), *words]:
            if "worktree" in script:
                yield from _added_worktrees(script)


def _added_worktrees(script: str) -> Iterator[str]:
    for found in _ADD.finditer(script):
        base = ""
        for moved in (*_MOVED.finditer(script, 0, found.start()), *_INTO.finditer(found["options"])):
            base = join(base, moved[1].strip("'\""))
        path = _first_word(found["rest"])
        if path:
            yield join(base, path)


def _first_word(rest: str) -> str | None:
    try:
        words = iter(shlex.split(rest))
    except ValueError:
        return None
    for word in words:
        if word in _WITH_ARGUMENT:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None
