"""Snapshot, rollback and fork, each after a write so that there is something new to store or to undo."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.subject import Subject
from benchmarks.timing import Timing, one_by_one


def measure(bench: Bench) -> Iterator[Result]:
    ours: dict[str, Timing] = {}
    for subject in bench.subjects:
        slow = subject is not bench.ours
        repeats = 3 if slow else 200 if bench.quick else 1_000
        for row, timing in timings(subject, bench, repeats):
            yield timed(row, bench.size, subject.name, timing, ours=ours.get(row))
            ours.setdefault(row, timing)
        if slow and not subject.has("snapshot"):
            for row in ("snapshot", "rollback"):
                yield Result(row, bench.size, subject.name, None, note="it has none")


def timings(subject: Subject, bench: Bench, repeats: int) -> Iterator[tuple[str, Timing]]:
    change = writer(subject, bench)
    kept: list[object] = []
    nothing = [()] * repeats
    if subject.has("snapshot"):
        yield "snapshot", one_by_one(lambda: kept.append(subject.answer("snapshot")), nothing, before=change)
        state = kept[-1]
        yield "rollback", one_by_one(lambda: subject.answer("restore", state), nothing, before=change)
    if subject.has("fork"):
        yield "fork", one_by_one(lambda: kept.append(subject.answer("fork")), nothing, before=change)


def writer(subject: Subject, bench: Bench) -> Callable[[], None]:
    paths = iter(bench.tree.sample_paths(10_000, seed=3))

    def change() -> None:
        subject.answer("write", next(paths), "something else\n")

    return change
