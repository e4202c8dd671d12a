"""Write, read text, read bytes, stat, list: on existing files, in random order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.timing import side_by_side

CALLS = 20_000
"""Enough that the touched files do not all fit into the processor's cache."""


def measure(bench: Bench) -> Iterator[Result]:
    for operation, calls in plans(bench):
        having = [subject for subject in bench.subjects if subject.has(operation)]
        timings = side_by_side(having, operation, calls, repeats=3 if bench.quick else 9)
        for subject, timing in zip(having, timings, strict=True):
            ours = None if subject is bench.ours else timings[0]
            yield timed(operation, bench.size, subject.name, timing, ours=ours)
        if bench.peer and bench.peer not in having:
            yield Result(operation, bench.size, bench.peer.name, None, note="it has none")


def plans(bench: Bench) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    paths = bench.tree.sample_paths(CALLS)
    one_path = [(path,) for path in paths]
    yield "read", one_path
    yield "read_bytes", one_path
    yield "stat", one_path
    yield "list", [(directory,) for directory in bench.tree.sample_directories(CALLS)]
    yield "write", [(path, f"edit {number} of this small file\n" * 6) for number, path in enumerate(paths)]
