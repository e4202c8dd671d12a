"""Family `whitespace`: a true edit of a block, sent with one mistake in white space in all its lines."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from benchmarks.edits.ambiguity import is_decidable
from benchmarks.edits.blocks import Block, Line, random_edit, random_range
from benchmarks.edits.calls import Hunk, edit_file, unified, v4a
from benchmarks.edits.corpus import Corpus, Source, indent_of
from benchmarks.edits.example import Edit, Example, Patch
from benchmarks.edits.mistakes import EXACT, FIRST, Mistake, dedented, of_indentation

SENT = ("edit_file", "v4a", "unified")
OTHER_MISTAKES = ("dedented", "first", "trailing added", "trailing removed", "trailing on blank lines", "crlf")


def example(rng: Random, corpus: Corpus, name: str) -> Example | str:
    """Make an example, or return the reason why there is none."""
    source = corpus.choose(rng)
    if source is None:
        return "the file is unsuitable"
    chosen = random_range(rng, source, 2, 25)
    if chosen is None:
        return "no block"
    mistakes = {mistake.name: mistake for mistake in of_indentation(source.unit)}
    kind = rng.choice((*mistakes, *OTHER_MISTAKES))
    if kind == "trailing removed":
        source = _with_trailing_blanks(rng, source, *chosen)
    block = random_edit(rng, source, *chosen)
    if block is None:
        return "no edit"
    sent = rng.choice(SENT)
    if sent != "edit_file":
        block = block.with_context(rng.randint(0, 3), rng.randint(0, 3))
    mistake = mistakes.get(kind) or _other(kind, block)
    quoted = None if mistake is None else mistake.quote(block.lines)
    if mistake is None or quoted is None:
        return "the mistake cannot be made"
    if kind != "crlf" and is_exact(block, quoted):
        return "the old lines are exact"
    if not block.is_unique:
        return "the block is not the only one"
    if not is_decidable(block, quoted, mistake, is_marked=sent != "edit_file"):
        return "undecidable"
    made = Example(
        name=name,
        kind="whitespace",
        language=source.language,
        mistake=kind,
        source=source.path,
        text=source.text,
        call=call(rng, block, quoted, sent),
        expected="".join(f"{line}\n" for line in block.result),
        loose=_like_added(block) if kind.startswith("trailing") else frozenset(),
    )
    return _with_crlf(rng, made) if kind == "crlf" else made


def call(rng: Random, block: Block, quoted: tuple[Line, ...], sent: str) -> Edit | Patch:
    """Return the call that sends the quoted lines of a block."""
    if sent == "edit_file":
        return edit_file(quoted, ends=rng.random() < 0.5)
    if sent == "unified":
        return unified([Hunk(quoted, block.start, block.start)])
    above = enclosing(block.source, block.start)
    anchors = (above.strip(),) if above is not None and rng.random() < 0.3 else ()
    return v4a([Hunk(quoted, block.start, block.start, anchors)])


def is_exact(block: Block, quoted: tuple[Line, ...]) -> bool:
    """Return whether the old lines are quoted exactly: the new lines may then be meant literally."""
    return all(one == other for one, other in zip(block.lines, quoted, strict=True) if one.mark != "+")


def _like_added(block: Block) -> frozenset[int]:
    """Return the added lines and the lines of the block that equal one: a diff may call either of them added."""
    texts = {block.result[number].strip() for number in block.added}
    new = range(block.start, block.start + sum(line.mark != "-" for line in block.lines))
    return frozenset(number for number in new if block.result[number].strip() in texts)


def enclosing(source: Source, number: int) -> str | None:
    """Return the nearest shallower line above a line."""
    here = next((line for line in source.lines[number:] if line.strip()), "")
    for line in reversed(source.lines[:number]):
        if line.strip() and len(indent_of(line)) < len(indent_of(here)):
            return line
    return None


def _other(kind: str, block: Block) -> Mistake | None:
    if kind == "dedented":
        return dedented(block)
    if kind == "first":
        return FIRST if block.lines[0].text.strip() else None
    if kind == "trailing added":
        return replace(EXACT, trailing="added")
    if kind == "trailing removed":
        return replace(EXACT, trailing="removed")
    if kind == "trailing on blank lines":
        return replace(EXACT, trailing="on blank lines")
    return EXACT


def _with_trailing_blanks(rng: Random, source: Source, start: int, stop: int) -> Source:
    lines = list(source.lines)
    for number in range(start, stop):
        if rng.random() < 0.5:
            lines[number] += rng.choice((" ", "  ", "\t"))
    return Source(source.path, source.language, tuple(lines), source.unit)


def _with_crlf(rng: Random, made: Example) -> Example:
    """Write the call, or the file, with `\\r\\n`."""
    if rng.random() < 0.5:
        text, expected = made.text.replace("\n", "\r\n"), (made.expected or "").replace("\n", "\r\n")
        return replace(made, mistake="crlf file", text=text, expected=expected)
    if isinstance(made.call, Edit):
        sent: Edit | Patch = Edit(made.call.old.replace("\n", "\r\n"), made.call.new.replace("\n", "\r\n"))
    else:
        sent = Patch(made.call.text.replace("\n", "\r\n"), made.call.patch_format)
    return replace(made, mistake="crlf call", call=sent)
