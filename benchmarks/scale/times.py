"""Measure what a call, a refresh, a merge and an opening take on each engine: `python -m benchmarks.scale.times`.

Two sessions on the same stream take turns, in one process, so nothing waits for another call. The times are elapsed
ones, with those of the server: they are meaningful only on an idle machine. Arguments are the names of engines.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from time import perf_counter_ns

from benchmarks.scale.engines import ENGINES
from benchmarks.scale.report import percentiles
from benchmarks.units import time_text
from weakfs import Session, Toolset

ROUNDS, OPENS, WARM = 200, 30, 5
OPERATIONS = ("call", "refresh", "merge", "open")


def write(session: Session) -> Callable[[int], None]:
    """Return a function that writes one of 20 files of about 1 KB by a tool call."""
    tools, name = Toolset(session), session.now()

    def call(number: int) -> None:
        content = f"{name} {number}\n" * 30
        result = tools.call("write_file", {"path": f"/{name}/{number % 20}", "content": content})
        assert result.success, result.message

    return call


def measured(location: str) -> dict[str, list[int]]:
    """Return the times of each operation in nanoseconds."""
    times: dict[str, list[int]] = {name: [] for name in OPERATIONS}

    def timed(name: str, operation: Callable[[], object]) -> None:
        begin = perf_counter_ns()
        operation()
        times[name].append(perf_counter_ns() - begin)

    with (
        Session.open(location, "times", on_conflict="merge") as one,
        Session.open(location, "times", on_conflict="merge") as other,
    ):
        first, second = write(one), write(other)
        for number in range(WARM + ROUNDS):
            timed("call", lambda number=number: first(number))
            timed("refresh", other.refresh)
            first(number)
            # The other session has not read this change: it reads it, merges, and appends again.
            timed("merge", lambda number=number: second(number))
            one.refresh()
    for _ in range(WARM + OPENS):
        timed("open", lambda: Session.open(location, "times").close())
    return {name: own[WARM:] for name, own in times.items()}


def main() -> None:
    warnings.simplefilter("ignore")
    print(f"| engine | {' | '.join(f'{name} p50, p95' for name in OPERATIONS)} |")
    print(f"| --- |{' --- |' * len(OPERATIONS)}")
    for name in sys.argv[1:] or ENGINES:
        with ENGINES[name]() as engine:
            found = measured(engine.location)
        cells: list[str] = []
        for operation in OPERATIONS:
            median, high, _ = percentiles(found[operation])
            cells.append(f"{time_text(median)}, {time_text(high)}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
