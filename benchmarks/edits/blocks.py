"""A block of lines of a file, and a true edit of it: lines that are kept, removed and added."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from keyword import kwlist
from random import Random
from typing import Literal

from benchmarks.edits.corpus import Source, indent_of

Mark = Literal[" ", "-", "+"]

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d+")
KEYWORDS = frozenset((*kwlist, "var", "let", "const", "function", "return", "new", "case", "switch", "public", "self"))
WITH_BRACES = frozenset(("javascript", "typescript", "c", "java", "go", "rust"))
NAMES = ("total", "limit", "cache", "ready", "extra")


@dataclass(frozen=True)
class Line:
    """A line of an edit, in the file's own white space; `inserted` if it is added without replacing a line."""

    mark: Mark
    text: str
    inserted: bool = False


@dataclass(frozen=True)
class Block:
    """Lines `start` to `stop` of a source, with a true edit of them."""

    source: Source
    start: int
    stop: int
    lines: tuple[Line, ...]

    @cached_property
    def result(self) -> tuple[str, ...]:
        """The lines of the file after the edit."""
        new = (line.text for line in self.lines if line.mark != "-")
        return (*self.source.lines[: self.start], *new, *self.source.lines[self.stop :])

    @cached_property
    def added(self) -> frozenset[int]:
        """The numbers, in the result, of the lines that the edit adds."""
        new = [line for line in self.lines if line.mark != "-"]
        return frozenset(self.start + number for number, line in enumerate(new) if line.mark == "+")

    @property
    def is_unique(self) -> bool:
        """Whether the old lines occur once in the file, ignoring white space."""
        old = "".join("".join(line.text.split()) for line in self.lines if line.mark != "+")
        first = self.source.squeezed.find(old)
        return bool(old) and self.source.squeezed.find(old, first + 1) < 0

    def with_context(self, before: int, after: int) -> Block:
        """Return the block with this many more lines around it, as far as the file has them."""
        lines = self.source.lines
        start, stop = max(0, self.start - before), min(len(lines), self.stop + after)
        above = [Line(" ", line) for line in lines[start : self.start]]
        below = [Line(" ", line) for line in lines[self.stop : stop]]
        return Block(self.source, start, stop, (*above, *self.lines, *below))


@dataclass
class _Slot:
    """The result for one line: `new` is `None` if it is removed, `after` is inserted after it."""

    old: str
    new: str | None
    after: list[str] = field(default_factory=list)


def random_range(rng: Random, source: Source, shortest: int, longest: int) -> tuple[int, int] | None:
    """Choose a range of lines of a file that begins and ends with a non-blank line."""
    length = rng.randint(shortest, longest)
    start = rng.randrange(max(1, len(source.lines) - length))
    stop = min(len(source.lines), start + length)
    while stop > start and not source.lines[stop - 1].strip():
        stop -= 1
    while start < stop and not source.lines[start].strip():
        start += 1
    return (start, stop) if stop - start >= shortest else None


def random_edit(rng: Random, source: Source, start: int, stop: int, *, most: int = 3) -> Block | None:
    """Edit lines at random; the first of them stays or is changed. Return `None` if there is no usable result."""
    slots = [_Slot(line, line) for line in source.lines[start:stop]]
    steps = (_change, _change, _delete, _insert_sibling, _insert_child, _insert_behind_children, _insert_nested)
    for _ in range(rng.randint(1, most)):
        rng.choice(steps)(rng, source, start, slots)
    lines = tuple(_flattened(slots, grouped=rng.random() < 0.7))
    block = Block(source, start, stop, lines)
    kept = any(line.mark == " " and line.text.strip() for line in lines)
    return block if kept and block.result != source.lines else None


def _flattened(slots: Sequence[_Slot], *, grouped: bool) -> list[Line]:
    lines: list[Line] = []
    removed: list[Line] = []
    added: list[Line] = []
    for slot in slots:
        if slot.new == slot.old or not grouped:
            lines += [*removed, *added]
            removed, added = [], []
        if slot.new == slot.old:
            lines.append(Line(" ", slot.old))
            lines += [Line("+", text, inserted=True) for text in slot.after]
            continue
        removed.append(Line("-", slot.old))
        added += [] if slot.new is None else [Line("+", slot.new)]
        added += [Line("+", text, inserted=True) for text in slot.after]
    return [*lines, *removed, *added]


def _change(rng: Random, source: Source, start: int, slots: list[_Slot]) -> None:
    slot = rng.choice(slots)
    changed = altered(rng, slot.old)
    if slot.new == slot.old and changed is not None:
        slot.new = changed


def _delete(rng: Random, source: Source, start: int, slots: list[_Slot]) -> None:
    slot = rng.choice(slots[1:])
    if slot.new == slot.old and slot.old.strip() and not slot.after:
        slot.new = None


def _insert_sibling(rng: Random, source: Source, start: int, slots: list[_Slot]) -> None:
    at = rng.randrange(len(slots))
    line = slots[at].old
    if line.strip() and slots[at].new is not None and not opens(source, start + at):
        slots[at].after += _content(rng, source, line, indent_of(line))


def _insert_child(rng: Random, source: Source, start: int, slots: list[_Slot]) -> None:
    at = rng.randrange(len(slots))
    if opens(source, start + at) and slots[at].new is not None:
        child = next(line for line in source.lines[start + at + 1 :] if line.strip())
        slots[at].after += _content(rng, source, child, indent_of(child))


def _insert_behind_children(rng: Random, source: Source, start: int, slots: list[_Slot]) -> None:
    at = rng.randrange(len(slots))
    if not opens(source, start + at):
        return
    last = last_below(source, start + at)
    if last - start < len(slots) and slots[last - start].new is not None:
        line = slots[at].old
        slots[last - start].after += _content(rng, source, line, indent_of(line))


def _insert_nested(rng: Random, source: Source, start: int, slots: list[_Slot]) -> None:
    at = rng.randrange(len(slots))
    line = slots[at].old
    if not line.strip() or opens(source, start + at) or slots[at].new is None:
        return
    indent, name = indent_of(line), f"{rng.choice(NAMES)}_{rng.randint(2, 99)}"
    if source.language == "python":
        slots[at].after += [f"{indent}if {name}:", f"{indent}{source.unit}{name} = None"]
    elif source.language in WITH_BRACES:
        condition = name if source.language in ("go", "rust") else f"({name})"
        body = f"{indent}{source.unit}{name}();"
        slots[at].after += [f"{indent}if {condition} {{", body, f"{indent}}}"]


def opens(source: Source, number: int) -> bool:
    """Return whether the next non-blank line is deeper than a line."""
    line = source.lines[number]
    following = next((other for other in source.lines[number + 1 :] if other.strip()), "")
    return bool(line.strip()) and len(indent_of(following)) > len(indent_of(line))


def last_below(source: Source, number: int) -> int:
    """Return the last of the deeper lines below a line; the line itself if there are none."""
    width = len(indent_of(source.lines[number]))
    last = number
    for at in range(number + 1, len(source.lines)):
        line = source.lines[at]
        if line.strip():
            if len(indent_of(line)) <= width:
                break
            last = at
    return last


def _content(rng: Random, source: Source, like: str, indent: str) -> list[str]:
    """Make a line like another one, or a plain statement."""
    changed = altered(rng, like)
    if changed is not None and (rng.random() < 0.6 or source.language not in {"python", *WITH_BRACES}):
        return [indent + changed.lstrip()]
    name, number = rng.choice(NAMES), rng.randint(2, 99)
    if source.language == "python":
        return [f"{indent}{name}_{number} = {number}"]
    if source.language in WITH_BRACES:
        return [f"{indent}{name}({number});"]
    return [] if changed is None else [indent + changed.lstrip()]


def altered(rng: Random, line: str) -> str | None:
    """Change one name or number of a line; `None` if there is none."""
    words = [found for found in WORD.finditer(line) if found.group() not in KEYWORDS]
    if not words:
        return None
    word = rng.choice(words)
    number = rng.randint(2, 99)
    new = str(int(word.group()[:9]) + number) if word.group().isdigit() else f"{word.group()}_{number}"
    return line[: word.start()] + new + line[word.end() :]
