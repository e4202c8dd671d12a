"""The bytes that one more stored version costs: a small file written, its record, and the snapshot of it."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator

from benchmarks.results import Result
from benchmarks.rows import Bench

VERSIONS = 1_000


def measure(bench: Bench) -> Iterator[Result]:
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        bench.ours.keep_versions(bench.tree, VERSIONS)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    yield Result("bytes a kept version", bench.size, bench.ours.name, (after - before) / VERSIONS)
