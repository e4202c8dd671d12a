"""Family `partial`: needles that fit only inside words, across a comment, or across the end of a statement.

Each call must be refused. The only place that equals the needle apart from white space is not a legal match.
"""

from __future__ import annotations

import io
import re
import tokenize
from random import Random

from benchmarks.edits.blocks import altered
from benchmarks.edits.corpus import Corpus, Source
from benchmarks.edits.example import Edit, Example

BLANKS = re.compile(r"(?<=\S)[ \t]+(?=\S)")
INSIDE_WORD = re.compile(r"(?<=\w)(?=\w)", re.ASCII)
PIECE = re.compile(r"[\w.]+|[^\w\s]+", re.ASCII)


def example(rng: Random, corpus: Corpus, name: str) -> Example | str:
    """Make an example, or return the reason why there is none."""
    source = corpus.choose(rng)
    if source is None:
        return "the file is unsuitable"
    text = source.text
    kind = rng.choice(("inside a word", "inside a word", "across a line break", "across a comment"))
    needle = _inside_words(rng, source) if kind == "inside a word" else _across_line_end(rng, source, kind)
    new = None if needle is None else altered(rng, needle)
    if needle is None or new is None:
        return "no needle"
    if needle in text or equivalents(text, needle) != 1:
        return "another place fits"
    call = Edit(needle, new, replace_all=rng.random() < 0.3)
    return Example(name, "partial", source.language, kind, source.path, text, call, None)


def equivalents(text: str, needle: str) -> int:
    """Count the places, including overlapping ones, that equal a needle except for white space, at any borders."""
    pattern = r"\s+".join(map(re.escape, needle.split()))
    return sum(1 for _ in re.finditer(f"(?={pattern})", text))


def _inside_words(rng: Random, source: Source) -> str | None:
    """Return a part of one or two lines that begins or ends inside a word, with different blanks in it."""
    number = rng.randrange(len(source.lines) - 1)
    line = source.lines[number]
    gaps = [*BLANKS.finditer(line)]
    cuts = [found.start() for found in INSIDE_WORD.finditer(line)]
    if not gaps or not cuts:
        return None
    gap = rng.choice(gaps)
    before, after = [at for at in cuts if at < gap.start()], [at for at in cuts if at > gap.end()]
    first = rng.choice(before) if before else None
    last = rng.choice(after) if after else None
    if first is not None and last is not None:
        first, last = rng.choice(((first, last), (first, None), (None, last)))
    if first is None and last is None:
        return None
    start = first if first is not None else len(line) - len(line.lstrip())
    stop = last if last is not None else len(line.rstrip())
    other = rng.choice(("  ", "\t", "   ")) if gap.group() == " " else " "
    return line[start : gap.start()] + other + line[gap.end() : stop]


def _across_line_end(rng: Random, source: Source, kind: str) -> str | None:
    """Join the end of a line with the beginning of the next one by a blank."""
    if source.language != "python":
        return None
    try:
        tokens = [*tokenize.generate_tokens(io.StringIO(source.text).readline)]
    except (tokenize.TokenError, SyntaxError):
        return None
    commented = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    ended = {token.start[0] for token in tokens if token.type == tokenize.NEWLINE}
    rows = sorted(commented if kind == "across a comment" else ended - commented)
    rows = [row for row in rows if row < len(source.lines) and source.lines[row].strip()]
    if not rows:
        return None
    row = rng.choice(rows)
    above, below = source.lines[row - 1], source.lines[row]
    begins = [found.start() for found in PIECE.finditer(above)]
    ends = [found.end() for found in PIECE.finditer(below)]
    if not begins or not ends:
        return None
    return f"{above[rng.choice(begins) :].rstrip()} {below[: rng.choice(ends)].lstrip()}"
