"""`import weakfs`, and the names that most programs import from it, beside the import of attrs and orjson."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.timing import Timing

LIBRARIES = "attrs and orjson"

STATEMENTS = {
    LIBRARIES: "import attrs, orjson",
    "import": "import weakfs",
    "import names": "from weakfs import InMemoryFilesystem, Session",
}


def measure(bench: Bench) -> Iterator[Result]:
    samples: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for _ in range(5 if bench.quick else 15):
        for name, statement in STATEMENTS.items():
            samples[name].append(nanoseconds_of(statement))
    libraries = Timing.of(samples[LIBRARIES])
    for row in ("import", "import names"):
        ours = Timing.of(samples[row])
        yield timed(row, bench.size, bench.ours.name, ours)
        yield timed(row, bench.size, LIBRARIES, libraries, ours=ours)


def nanoseconds_of(statement: str) -> float:
    """Return the nanoseconds that the statement takes in a new interpreter, without its start-up."""
    program = f"from time import perf_counter_ns as now; start = now(); {statement}; print(now() - start)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)
