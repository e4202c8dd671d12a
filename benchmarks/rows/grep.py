"""Search 10,000 files of 45 lines, beside ripgrep on the same files on disk and beside each peer."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.subject import Subject, SyncSubject
from benchmarks.timing import side_by_side
from benchmarks.workload import Tree

LINES = 45

PATTERNS = {
    "grep literal": "needle_",
    "grep regex": r"def needle_\d+\(",
    "grep no case": r"(?i)NEEDLE_",
    "grep words": r"\bneedle_\d+\b",
}
"""Each finds the same one line in every hundredth file."""


class Ripgrep(SyncSubject):
    """ripgrep on a folder, as a program: its start is part of what a caller waits for."""

    name = "ripgrep"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.operations = {"grep": self.grep}

    def seed(self, tree: Tree) -> None:
        for path, text in tree.files():
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
