"""Finding files by name in memory, compared with matching the keys of a flat dictionary of paths one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fnmatch import translate
from functools import partial

from benchmarks.results import Result, together
from benchmarks.rows import Bench
from benchmarks.subject import OURS
from benchmarks.timing import in_turn, processor_time
from weakfs import InMemoryFilesystem

FLAT = "flat dictionary"
ONE_OF = 4
"""One file in this many is a Python file."""


def measure(bench: Bench) -> Iterator[Result]:
    fs, flat = InMemoryFilesystem(), dict[str, int]()
    for number, (path, text) in enumerate(bench.tree.files()):
        name = path if number % ONE_OF else path.replace(".txt", ".py")
        fs.write(name, text)
        flat[name] = number
    below = f"{bench.tree.directory(1)}/*.py"
    subjects: dict[str, tuple[str, Callable[[], list[str]]]] = {
        "glob all": ("**/*.py", partial(matching, flat, "*.py")),
        "glob directory": (below, partial(matching, flat, below)),
    }
    for row, (pattern, by_hand) in subjects.items():
        ours = partial(fs.glob, pattern, max_results=-1)
        assert sorted(match.path for match in ours()) == sorted(by_hand())
        measured = {OURS: partial(processor_time, ours), FLAT: partial(processor_time, by_hand)}
        yield from together(row, bench.size, in_turn(measured, repeats=3 if bench.quick else 15))


def matching(flat: dict[str, int], pattern: str) -> list[str]:
    """Return the matching paths, newest first."""
    matches = re.compile(translate(pattern)).match
    return sorted(sorted(path for path in flat if matches(path)), key=flat.__getitem__, reverse=True)
