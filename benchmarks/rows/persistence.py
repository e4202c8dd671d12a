"""Save and load of a session whose files were all created by events, beside hand-written orjson of the same."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from benchmarks.handwritten import Handwritten
from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.timing import Timing
from weakfs import InMemoryFilesystem, Session

HANDWRITTEN = "orjson by hand"


def measure(bench: Bench) -> Iterator[Result]:
    bench.ours.seed(bench.tree)
    handwritten = Handwritten.holding(bench.tree)
    with tempfile.TemporaryDirectory() as folder:
        mine, theirs = Path(folder) / "ours.json", Path(folder) / "theirs.json"
        saving = alternately(lambda: bench.ours.session.save(mine), lambda: handwritten.save(theirs))
        loading = alternately(lambda: Session.load(mine), lambda: Handwritten.load(theirs))
        assert Handwritten.load(theirs).root == handwritten.root
        loaded = InMemoryFilesystem(Session.load(mine)).read(bench.tree.path(0)).content
        assert loaded == bench.tree.text(0), "a loaded session does not hold what was saved"
        sizes = mine.stat().st_size, theirs.stat().st_size
    for row, (ours, other) in (("save", saving), ("load", loading)):
        yield timed(row, bench.size, bench.ours.name, ours)
        yield timed(row, bench.size, HANDWRITTEN, other, ours=ours)
    yield Result("bytes saved", bench.size, bench.ours.name, sizes[0])
    yield Result("bytes saved", bench.size, HANDWRITTEN, sizes[1], ours=sizes[0])


def alternately(ours: Callable[[], Any], theirs: Callable[[], Any], *, repeats: int = 5) -> list[Timing]:
    """Time both in turn; the result of each is released before the next begins."""
    samples: list[list[float]] = [[], []]
    for _ in range(repeats):
        for act, taken in zip((ours, theirs), samples, strict=True):
            start = perf_counter_ns()
            result = act()
            taken.append(perf_counter_ns() - start)
            del result
    return [Timing.of(taken) for taken in samples]
