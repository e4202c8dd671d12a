"""Family `mutants`: an exact call, sent again one step further out, with each line clipped at column 0.

One quoted indentation may then stand for two in the file, as where a class ends and a function follows.
"""

from __future__ import annotations

from random import Random

from benchmarks.edits.ambiguity import is_decidable
from benchmarks.edits.blocks import Block, Line, last_below, random_edit, random_range
from benchmarks.edits.corpus import Corpus, Source, indent_of
from benchmarks.edits.example import Example
from benchmarks.edits.mistakes import clipped
from benchmarks.edits.whitespace import SENT, call, is_exact

BEGINNINGS = ("def ", "class ", "async def ", "function ", "func ", "export ", "static ", "public ")


def example(rng: Random, corpus: Corpus, name: str) -> Example | str:
    """Make an example, or return the reason why there is none."""
    source = corpus.choose(rng)
    if source is None:
        return "the file is unsuitable"
    crosses = rng.random() < 0.5
    block = _across_the_end_of_a_body(rng, source) if crosses else _anywhere(rng, source)
    if block is None:
        return "no edit"
    sent = rng.choice(SENT)
    if sent != "edit_file":
        block = block.with_context(rng.randint(0, 3), rng.randint(0, 3))
    mistake = clipped(source.unit)
    quoted = mistake.quote(block.lines)
    if quoted is None or is_exact(block, quoted):
        return "the old lines are exact"
    if not block.is_unique:
        return "the block is not the only one"
    if not is_decidable(block, quoted, mistake, is_marked=sent != "edit_file"):
        return "undecidable"
    clips = any(line.text.strip() and not indent_of(line.text).startswith(source.unit) for line in block.lines)
    return Example(
        name=name,
        kind="mutants",
        language=source.language,
        mistake=("across a body's end" if crosses else "clipped") if clips else "moved out whole",
        source=source.path,
        text=source.text,
        call=call(rng, block, quoted, sent),
        expected="".join(f"{line}\n" for line in block.result),
    )


def _anywhere(rng: Random, source: Source) -> Block | None:
    chosen = random_range(rng, source, 3, 40)
    if chosen is None:
        return None
    outside = [not indent_of(line) for line in source.lines[slice(*chosen)] if line.strip()]
    # A block in which nothing is clipped is only moved; a few of those are enough.
    if not any(outside) and rng.random() < 0.8:
        return None
    return random_edit(rng, source, *chosen, most=4)


def _across_the_end_of_a_body(rng: Random, source: Source) -> Block | None:
    """Edit from the last lines of a body into the function that follows it, and insert something after that."""
    starts = [
        number
        for number, line in enumerate(source.lines)
        if line.startswith(BEGINNINGS) and len(indent_of(_line_above(source, number))) >= len(source.unit)
    ]
    if not starts:
        return None
    begin = rng.choice(starts)
    start = max(0, begin - rng.randint(2, 12))
    stop = min(len(source.lines), begin + rng.randint(2, 12))
    last = last_below(source, begin) + 1
    if stop >= last or rng.random() < 0.5:
        stop = min(last, begin + 40)
    while start < begin and not source.lines[start].strip():
        start += 1
    while stop > begin and not source.lines[stop - 1].strip():
        stop -= 1
    if stop - begin < 2:
        return None
    if rng.random() < 0.3:
        return random_edit(rng, source, start, stop, most=4)
    kept = tuple(Line(" ", line) for line in source.lines[start:stop])
    added = _added(rng, source, begin, stop)
    above = tuple(kept[: begin - start])
    if rng.random() < 0.25 and source.language == "python" and indent_of(_line_above(source, begin)):
        return Block(source, start, stop, _method_behind(rng, source, above) + kept[len(above) :])
    return Block(source, start, stop, (*kept, *added)) if added else None


def _line_above(source: Source, number: int) -> str:
    return next((line for line in reversed(source.lines[:number]) if line.strip()), "")


def _added(rng: Random, source: Source, begin: int, stop: int) -> tuple[Line, ...]:
    """Return a function to insert after a function that ends here, or else a statement like the last one."""
    number, last = rng.randint(2, 99), source.lines[stop - 1]
    ends = last_below(source, begin) + 1 <= stop
    if source.language != "python":
        return ()
    if ends and rng.random() < 0.6:
        texts = ["", "", f"def added_{number}(value):", f"{source.unit}return value + {number}"]
    else:
        texts = [f"{indent_of(last)}extra_{number} = {number}"]
    return tuple(Line("+", text, inserted=True) for text in texts)


def _method_behind(rng: Random, source: Source, above: tuple[Line, ...]) -> tuple[Line, ...]:
    """Insert a method after the last line of a class body."""
    number, unit = rng.randint(2, 99), source.unit
    end = max((at + 1 for at, line in enumerate(above) if line.text.strip()), default=0)
    texts = ["", f"{unit}def added_{number}(self):", f"{unit * 2}return {number}"]
    return (*above[:end], *(Line("+", text, inserted=True) for text in texts), *above[end:])
