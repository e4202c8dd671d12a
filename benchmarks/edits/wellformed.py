"""Family `wellformed`: patches without a mistake, on files in which the same lines occur again and again."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.edits.blocks import WORD, Line, altered
from benchmarks.edits.calls import Hunk, unified, v4a
from benchmarks.edits.corpus import Corpus, Source, indent_of
from benchmarks.edits.example import PATH, Example, Patch
from benchmarks.edits.placements import before_changes, behind_changes, has_several_results, places, undecided
from benchmarks.edits.repetitive import repetitive

KINDS = ("v4a", "v4a", "v4a", "difflib", "git", "shifted", "counts")
SHORTENED = ("whole", "whole", "without colon", "name and opening")
NEAREST_BY = 3
"""If counts are wrong, the stated line may be wrong by this much."""


def example(rng: Random, corpus: Corpus, name: str) -> Example | str:
    """Make an example, or return the reason why there is none."""
    source = repetitive(rng) if rng.random() < 0.7 else corpus.choose(rng)
    if source is None:
        return "the file is unsuitable"
    lines = edited(rng, source)
    if all(line.mark == " " for line in lines):
        return "no edit"
    kind, context = rng.choice(KINDS), rng.randint(0, 3)
    expected = "".join(f"{line.text}\n" for line in lines if line.mark != "-")
    if kind == "v4a":
        return _v4a_example(rng, source, lines, context, name, expected)
    if kind in ("difflib", "git"):
        call: Patch | str = Patch(
            (difflib_diff if kind == "difflib" else git_diff)(source.text, expected, context), "unified"
        )
    else:
        call = _inaccurate(rng, source, lines, context, kind)
    if isinstance(call, str):
        return call
    return Example(name, "wellformed", source.language, kind, source.path, source.text, call, expected)


def _v4a_example(rng: Random, source: Source, lines: Sequence[Line], context: int, name: str, expected: str) -> Example:
    kept = _kept(lines)
    cuts = cut(lines, context, merge_below=rng.choice((0, 2 * context)))
    hunks = [_anchored(rng, source, hunk, kept) for hunk in cuts]
    doubtful = undecided(source.lines, hunks)
    must_refuse = any(not hunk.anchors for hunk in doubtful) and has_several_results(source.lines, hunks)
    mistake = _kind_of_anchors(source, hunks)
    if doubtful:
        mistake = "several places" if must_refuse else "anchor in doubt"
    return Example(
        name,
        "wellformed",
        source.language,
        mistake,
        source.path,
        source.text,
        v4a(hunks),
        None if must_refuse else expected,
        may_refuse=bool(doubtful),
    )


def _kept(lines: Sequence[Line]) -> frozenset[int]:
    """Return the numbers of the old lines that stay: a line that the patch itself removes cannot be an anchor."""
    old = (line for line in lines if line.mark != "+")
    return frozenset(number for number, line in enumerate(old) if line.mark == " ")


def _kind_of_anchors(source: Source, hunks: Sequence[Hunk]) -> str:
    known = {line.strip() for line in source.lines}
    if any(anchor not in known for hunk in hunks for anchor in hunk.anchors):
        return "shortened anchors"
    if any(len(hunk.anchors) > 1 for hunk in hunks):
        return "nested anchors"
    return "whole anchors" if any(hunk.anchors for hunk in hunks) else "no anchors"


def edited(rng: Random, source: Source) -> list[Line]:
    """Return the lines of a file with one to six edits, with a line that stays between any two."""
    made: list[Line] = []
    left = rng.randint(1, 6)
    chance = left / len(source.lines) * 1.5
    since = 1
    for line in source.lines:
        if left and since and line.strip() and rng.random() < chance:
            left, since = left - 1, 0
            made += _edit(rng, line)
        else:
            since += 1
            made.append(Line(" ", line))
    return made


def _edit(rng: Random, line: str) -> list[Line]:
    changed = altered(rng, line)
    choice = rng.choice(("change", "change", "delete", "insert", "double"))
    if changed is None or choice == "delete":
        return [Line("-", line)]
    if choice == "insert":
        return [Line(" ", line), Line("+", changed, inserted=True)]
    more = [Line("+", f"{indent_of(line)}{changed.lstrip()}")] if choice == "double" else []
    return [Line("-", line), Line("+", changed), *more]


def cut(lines: Sequence[Line], context: int, *, merge_below: int) -> list[Hunk]:
    """Cut the edited lines of a file into hunks; those with fewer kept lines between them are merged.

    Hunks that are not merged may share lines of context. A hunk always has an old line.
    """
    runs: list[list[int]] = []
    for number, line in enumerate(lines):
        if line.mark == " ":
            continue
        if runs and number - runs[-1][1] <= merge_below:
            runs[-1][1] = number + 1
        elif runs and number == runs[-1][1]:
            runs[-1][1] += 1
        else:
            runs.append([number, number + 1])
    return [_hunk(lines, runs, at, context) for at in range(len(runs))]


def _hunk(lines: Sequence[Line], runs: Sequence[Sequence[int]], at: int, context: int) -> Hunk:
    begin, end = runs[at]
    earliest = runs[at - 1][1] if at else 0
    latest = runs[at + 1][0] if at + 1 < len(runs) else len(lines)
    if all(line.mark == "+" for line in lines[begin:end]):
        context = max(1, context)
    start, stop = max(earliest, begin - context), min(latest, end + context)
    old = sum(line.mark != "+" for line in lines[:start])
    new = sum(line.mark != "-" for line in lines[:start])
    return Hunk(tuple(lines[start:stop]), old, new)


def _anchored(rng: Random, source: Source, hunk: Hunk, kept: frozenset[int]) -> Hunk:
    """Give a hunk the anchors that a model would write: the lines that enclose it, or none."""
    chain = _enclosing_chain(source, hunk, kept)
    choice = rng.choice(("none", "inner", "outer", "nested", "nested"))
    if not chain or choice == "none":
        anchors: tuple[str, ...] = ()
    elif choice == "inner":
        anchors = (chain[-1],)
    elif choice == "outer":
        anchors = (chain[0],)
    else:
        anchors = tuple(chain[-2:])
    how = rng.choice(SHORTENED)
    short = tuple(_shortened(anchor, how) for anchor in anchors)
    last = hunk.start + len(hunk.old) == len(source.lines)
    return Hunk(hunk.lines, hunk.start, hunk.new_start, short, at_end=last and rng.random() < 0.5)


def _shortened(anchor: str, how: str) -> str:
    if how == "without colon":
        return anchor.removesuffix(":")
    name, opening, _ = anchor.partition("(")
    return name + opening if how == "name and opening" and opening else anchor


def _enclosing_chain(source: Source, hunk: Hunk, kept: frozenset[int]) -> list[str]:
    """Return the lines that enclose a hunk's first line and its changes, from the outermost, without mere brackets."""
    changed = [hunk.start + number for number in (before_changes(hunk), behind_changes(hunk) - 1)]
    chains = [enclosing(source, number) for number in (hunk.start, *changed)]
    shared = sorted(kept.intersection(*chains))
    return [text for text in (source.lines[number].strip() for number in shared) if WORD.search(text)]


def enclosing(source: Source, number: int) -> list[int]:
    """Return the numbers of the lines that enclose a line: the shallower ones above it, or its `[section]`."""
    here = next((line for line in source.lines[number:] if line.strip()), "")
    width = len(indent_of(here))
    found: list[int] = []
    for at in range(number - 1, -1, -1):
        line = source.lines[at]
        if source.language == "ini" and line.startswith("["):
            return [] if here.startswith("[") else [at]
        if line.strip() and len(indent_of(line)) < width:
            width = len(indent_of(line))
            found.append(at)
    return found


def _inaccurate(rng: Random, source: Source, lines: Sequence[Line], context: int, kind: str) -> Patch | str:
    """Make a unified diff with wrong line numbers or counts, for which the nearest place is the true one."""
    shift = rng.choice((-1, 1)) * rng.randint(1, 40) if kind == "shifted" else 0
    hunks = cut(lines, context, merge_below=2 * context)
    for hunk in hunks:
        others = [at for at in places(source.lines, hunk) if at != hunk.start]
        farther = abs(shift) + NEAREST_BY
        if any(abs(at - hunk.start - shift) <= farther for at in others) or not "".join(hunk.old).strip():
            return "undecidable"
        if hunk.start + shift < 0 or hunk.new_start + shift < 0:
            return "undecidable"
        if any((line.mark + line.text).startswith(("---", "+++")) for line in hunk.lines):
            return "undecidable"
    errors = [(rng.randint(-2, 3), rng.randint(-2, 3)) for _ in hunks] if kind == "counts" else ()
    return unified([hunk.shifted(shift) for hunk in hunks], count_errors=errors)


def difflib_diff(old: str, new: str, context: int) -> str:
    lines = unified_diff(old.splitlines(True), new.splitlines(True), f"a/{PATH}", f"b/{PATH}", n=context)
    return "".join(lines)


def git_diff(old: str, new: str, context: int) -> str:
    """Return the output of `git diff`, independent of the user's configuration."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    clean |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    with TemporaryDirectory() as directory:
        for side, text in (("a", old), ("b", new)):
            Path(directory, side).mkdir()
            Path(directory, side, PATH).write_bytes(text.encode())
        command = ["git", "diff", "--no-index", "--no-prefix", f"-U{context}", f"a/{PATH}", f"b/{PATH}"]
        done = subprocess.run(command, cwd=directory, env=clean, capture_output=True, check=False)
    return done.stdout.decode()
