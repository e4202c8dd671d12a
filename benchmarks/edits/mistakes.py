"""Mistakes in white space that a caller makes in the same way in all lines of a call, old and new."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from benchmarks.edits.blocks import Block, Line
from benchmarks.edits.corpus import indent_of

# The form of one of the file's indentations in the call; `None` if the mistake cannot be made with it.
Indent = Callable[[str], str | None]


@dataclass(frozen=True)
class Mistake:
    """What a caller does to each line, and to the first line of the old text and of the new one."""

    name: str
    indent: Indent
    strips_first: bool = False
    trailing: Literal["", "added", "removed", "on blank lines"] = ""

    def quote(self, lines: Sequence[Line]) -> tuple[Line, ...] | None:
        """Return the lines as the caller writes them, `None` if the mistake cannot be made with one of them."""
        quoted: list[Line] = []
        above = ""
        seen: set[str] = set()
        for line in lines:
            text: str | None = line.text
            if line.text.strip():
                indent = self.indent(indent_of(line.text))
                text = None if indent is None else indent + line.text.lstrip(" \t")
                above = indent or ""
            if text is None:
                return None
            if self.strips_first and {"-": "old", "+": "new"}.get(line.mark, "both") not in seen:
                text = text.lstrip(" \t")
            seen |= {" ": {"old", "new", "both"}, "-": {"old"}, "+": {"new"}}[line.mark]
            quoted.append(Line(line.mark, self._ended(text, above), line.inserted))
        return tuple(quoted)

    def _ended(self, text: str, above: str) -> str:
        if self.trailing == "removed":
            return text.rstrip(" \t")
        if self.trailing == "added" and text.strip():
            return f"{text}  "
        return above if self.trailing == "on blank lines" and not text.strip() else text


def further_in(more: str, indent: str) -> str | None:
    return indent + more


def further_out(less: str, indent: str) -> str | None:
    return indent[len(less) :] if indent.startswith(less) else None


def clipped_out(less: str, indent: str) -> str | None:
    """Move one step out; indentation of less than a step becomes none."""
    return indent[len(less) :] if indent.startswith(less) else ""


def with_tabs(width: int, indent: str) -> str | None:
    """Replace each step of blanks with a tab."""
    if "\t" in indent:
        return None
    return "\t" * (len(indent) // width) + " " * (len(indent) % width)


def with_blanks(width: int, indent: str) -> str | None:
    """Replace each tab with blanks."""
    bare = indent.lstrip("\t")
    return None if "\t" in bare else " " * width * (len(indent) - len(bare)) + bare


def rescaled(given: int, wanted: int, indent: str) -> str | None:
    """Change the width of steps."""
    if "\t" in indent:
        return None
    return " " * (len(indent) // given * wanted + len(indent) % given)


def unchanged(indent: str) -> str | None:
    return indent


FIRST = Mistake("first line without indentation", unchanged, strips_first=True)
EXACT = Mistake("exact", unchanged)


def clipped(unit: str) -> Mistake:
    return Mistake("one step out, clipped", partial(clipped_out, unit))


def of_indentation(unit: str) -> Iterator[Mistake]:
    """Yield every mistake of indentation that can be made in a file with such steps."""
    yield Mistake("one step in", partial(further_in, unit))
    yield Mistake("two steps in", partial(further_in, unit * 2))
    yield Mistake("one step out", partial(further_out, unit))
    yield Mistake("two steps out", partial(further_out, unit * 2))
    if unit == "\t":
        for width in (2, 4, 8):
            yield Mistake(f"{width} blanks for a tab", partial(with_blanks, width))
        return
    yield Mistake("tabs for blanks", partial(with_tabs, len(unit)))
    if len(unit) == 4:
        yield Mistake("two blanks for four", partial(rescaled, 4, 2))
    if len(unit) == 2:
        yield Mistake("four blanks for two", partial(rescaled, 2, 4))


def dedented(block: Block) -> Mistake | None:
    """Return the effect of `textwrap.dedent` on all lines, `None` if it has none."""
    indents = [indent_of(line.text) for line in block.lines if line.text.strip()]
    margin = min(indents, key=len)
    if not all(indent.startswith(margin) for indent in indents):
        return None
    return Mistake("dedented", partial(further_out, margin)) if margin else None
