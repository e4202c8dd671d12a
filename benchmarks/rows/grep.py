"""Search 10,000 files of 45 lines, compared with ripgrep on the same files on disk and with each peer.

The rows of a pattern measure a repeated search, in which a library benefits from anything that it caches between
searches. The rows of the first search of a new tree, and of a search after a write, show how much.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.ours import Weakfs
from benchmarks.results import Result, timed, together
from benchmarks.rows import Bench
from benchmarks.subject import OURS, Subject, SyncSubject
from benchmarks.timing import in_turn, nanoseconds, side_by_side
from benchmarks.workload import Tree

LINES = 45

PATTERNS = {
    "grep literal": "needle_",
    "grep regex": r"def needle_\d+\(",
    "grep no case": r"(?i)NEEDLE_",
    "grep words": r"\bneedle_\d+\b",
}
"""Each finds the same single line in every hundredth file."""

LITERAL = PATTERNS["grep literal"]


class Ripgrep(SyncSubject):
    """ripgrep on a folder, as a program: its start-up is part of what a caller waits for."""

    name = "ripgrep"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.operations = {"grep": self.grep, "write": self.write}

    def seed(self, tree: Tree) -> None:
        for path, text in tree.files():
            self.write(path, text)

    def write(self, path: str, text: str) -> None:
        file = Path(f"{self.folder}{path}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def grep(self, pattern: str) -> int:
        command = ["rg", "--no-config", "--no-ignore", "--hidden", "-n", "-e", pattern, str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).stdout.count(b"\n")


def measure(bench: Bench) -> Iterator[Result]:
    tree = Tree(bench.tree.size, lines=LINES)
    bench.ours.seed(tree)
    if bench.peer:
        bench.peer.seed(tree)
        yield from compare(bench, tree, bench.peer)
        return
    if shutil.which("rg") is None:
        for row in PATTERNS:
            yield Result(row, bench.size, Ripgrep.name, None, note="rg is not on this machine")
        return
    with tempfile.TemporaryDirectory() as folder:
        ripgrep = Ripgrep(Path(folder))
        ripgrep.seed(tree)
        os.sync()
        yield from compare(bench, tree, ripgrep)
        yield from first(bench, tree, ripgrep)


def compare(bench: Bench, tree: Tree, other: Subject) -> Iterator[Result]:
    for row, pattern in PATTERNS.items():
        found = other.answer("grep", pattern)
        if found != tree.needles:
            yield Result(row, bench.size, other.name, None, note="it takes literals only")
            continue
        mine = bench.ours.answer("grep", pattern)
        assert mine == tree.needles, f"{row}: weakfs found {mine} lines of {tree.needles}"
        pair, repeats = [bench.ours, other], 3 if bench.quick else 9
        ours, theirs = side_by_side(pair, "grep", [(pattern,)], repeats=repeats)
        yield timed(row, bench.size, bench.ours.name, ours)
        yield timed(row, bench.size, other.name, theirs, ours=ours)
    yield from after_a_write(bench, tree, other)


def after_a_write(bench: Bench, tree: Tree, other: Subject) -> Iterator[Result]:
    """Search after each write of one small file, as an agent does."""
    pair = {OURS: bench.ours, other.name: other}
    paths = iter(tree.sample_paths(100, seed=13))

    def write() -> None:
        path = next(paths)
        for subject in pair.values():
            subject.answer("write", path, "one small file\n")

    measured = {
        name: lambda subject=subject: nanoseconds(lambda: subject.answer("grep", LITERAL))
        for name, subject in pair.items()
    }
    yield from together(
        "grep after write", bench.size, in_turn(measured, repeats=3 if bench.quick else 5, before=write)
    )


def first(bench: Bench, tree: Tree, other: Subject) -> Iterator[Result]:
    """Search a tree that was not searched before. The files on disk were read before."""

    def of_new() -> float:
        new = Weakfs()
        new.seed(tree)
        return nanoseconds(lambda: new.answer("grep", LITERAL))

    measured = {OURS: of_new, other.name: lambda: nanoseconds(lambda: other.answer("grep", LITERAL))}
    yield from together("grep first", bench.size, in_turn(measured, repeats=3 if bench.quick else 9))
