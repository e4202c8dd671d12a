"""The longest time of a single write, and the longest garbage collection, with 1,000 versions stored."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.results import Result
from benchmarks.rows import Bench
from benchmarks.timing import pauses

WRITES = 50_000


def measure(bench: Bench) -> Iterator[Result]:
    paths = bench.tree.sample_paths(WRITES // 10 if bench.quick else WRITES, seed=5)
    calls = [(path, f"edit {number} of this small file\n" * 6) for number, path in enumerate(paths)]
    waits = pauses(bench.ours.operations["write"], calls)
    yield Result("longest write", bench.size, bench.ours.name, waits.longest_operation)
    note = f"{waits.collections:,} collections"
    yield Result("longest collection", bench.size, bench.ours.name, waits.longest_collection, note=note)
