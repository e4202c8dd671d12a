"""One example: a file, a call and the right answer; and the verdict on the engine's answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from typing import Literal

from weakfs import InMemoryFilesystem, Session, Toolset
from weakfs.editing import EditError, PatchError, apply_patch, replace

Sent = Literal["edit_file", "v4a", "unified"]
Verdict = Literal["right", "refused", "wrong"]

PATH = "file"
"""The name of the file in every patch."""


@dataclass(frozen=True)
class Edit:
    """A call of `edit_file`."""

    old: str
    new: str
    replace_all: bool = False


@dataclass(frozen=True)
class Patch:
    """A call of `apply_patch`."""

    text: str
    patch_format: Literal["v4a", "unified"]


@dataclass(frozen=True)
class Example:
    """A call on a text, and the expected text after it.

    `expected` is `None` if the call must be refused; with `may_refuse` a refusal is right too. On the lines
    `loose` of the expected text, counted from 0, trailing blanks are ignored.
    """

    name: str
    kind: str
    language: str
    mistake: str
    source: str
    text: str
    call: Edit | Patch
    expected: str | None
    may_refuse: bool = False
    loose: frozenset[int] = frozenset()

    @property
    def sent(self) -> Sent:
        return "edit_file" if isinstance(self.call, Edit) else self.call.patch_format


@dataclass(frozen=True)
class Answer:
    """The verdict on an example, with the text that the call produced or the message of the refusal."""

    example: Example
    verdict: Verdict
    made: str | None
    message: str = ""


Engine = Callable[[str, Edit | Patch], str]


class Refused(Exception):
    """The engine refused the call."""


def direct(text: str, call: Edit | Patch) -> str:
    """Make a call with the functions of `weakfs.editing`."""
    try:
        if isinstance(call, Edit):
            return replace(text, call.old, call.new, replace_all=call.replace_all).text
        fs = InMemoryFilesystem()
        fs.write_bytes(PATH, text.encode())
        apply_patch(fs, call.text, patch_format=call.patch_format)
        return fs.read_bytes(PATH).content.decode()
    except (EditError, PatchError) as error:
        raise Refused(str(error)) from None


def by_tool(text: str, call: Edit | Patch) -> str:
    """Make a call with the tools, as a model does."""
    session = Session()
    fs = InMemoryFilesystem(session)
    fs.write_bytes(PATH, text.encode())
    if isinstance(call, Edit):
        arguments: dict[str, object] = {"path": PATH, "old_string": call.old, "new_string": call.new}
        result = Toolset(session, fs).call("edit_file", {**arguments, "replace_all": call.replace_all})
    else:
        result = Toolset(session, fs).call("apply_patch", {"patch": call.text, "patch_format": call.patch_format})
    if not result.success:
        raise Refused(result.message)
    return fs.read_bytes(PATH).content.decode()


def judge(example: Example, engine: Engine = direct) -> Answer:
    """Make the call of an example and compare. An exception that is not a refusal is a wrong answer."""
    try:
        made = engine(example.text, example.call)
    except Refused as refused:
        right = example.expected is None or example.may_refuse
        return Answer(example, "right" if right else "refused", None, str(refused))
    except Exception as error:
        return Answer(example, "wrong", None, f"{type(error).__name__}: {error}")
    if example.expected is not None and same(made, example.expected, example.loose):
        return Answer(example, "right", made)
    return Answer(example, "wrong", made)


def same(made: str, expected: str, loose: frozenset[int]) -> bool:
    """Compare two texts, ignoring trailing blanks on some lines."""
    if made == expected or not loose:
        return made == expected
    ours, theirs = made.split("\n"), expected.split("\n")
    return len(ours) == len(theirs) and all(
        one == other or (number in loose and one.rstrip(" \t") == other.rstrip(" \t"))
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True))
    )


def describe(answer: Answer) -> str:
    """Format an example with its answer: the call, and how the resulting text differs from the right one."""
    example = answer.example
    title = f"=== {example.name}: {answer.verdict}; {example.kind}, {example.mistake}, sent as {example.sent}; "
    parts = [f"{title}{example.language}, {example.source}", *_call(example.call)]
    if example.expected is None:
        parts.append("--- the call must be refused")
        parts += _diff("the file", example.text, "what the call made", answer.made)
    else:
        parts.append("--- the true edit:")
        parts += _diff("the file", example.text, "expected", example.expected)
        parts += _diff("expected", example.expected, "what the call made", answer.made)
    if answer.message:
        parts.append(f"--- message: {answer.message}")
    return "\n".join(parts)


def _call(call: Edit | Patch) -> list[str]:
    if isinstance(call, Patch):
        return ["--- patch:", *map(_visible, call.text.split("\n"))]
    new = ["--- new_string:", *map(_visible, call.new.split("\n"))]
    return ["--- old_string:", *map(_visible, call.old.split("\n")), *new]


def _diff(before: str, old: str, after: str, new: str | None) -> list[str]:
    if new is None:
        return []
    lines = unified_diff(old.split("\n"), new.split("\n"), before, after, n=3, lineterm="")
    return [_visible(line) for line in lines]


def _visible(line: str) -> str:
    """Show tabs, carriage returns, and blanks at the end of a line."""
    kept = line.rstrip(" ")
    return kept.replace("\t", "→   ").replace("\r", "␍") + "·" * (len(line) - len(kept))
