"""Move and delete a directory: of 20 or 400 files compared with a peer, and for ours one that contains everything."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.results import Result, timed
from benchmarks.rows import Bench
from benchmarks.timing import Timing, one_by_one, side_by_side

MOVED = "/moved"
DELETIONS = 10


def measure(bench: Bench) -> Iterator[Result]:
    yield from everything(bench) if bench.peer is None else beside(bench)


def beside(bench: Bench) -> Iterator[Result]:
    """Move a directory of 400 there and back, and delete directories of 20."""
    assert bench.peer
    directory = "/dir0"
    if bench.peer.has("move"):
        there_and_back = [(directory, MOVED), (MOVED, directory)] * 64
        timings = side_by_side(bench.subjects, "move", there_and_back, repeats=3 if bench.quick else 9)
        yield from pair("move", bench, timings)
    else:
        yield Result("move", bench.size, bench.peer.name, None, note="it has none")
    count = min(DELETIONS, bench.tree.directories - 1)
    doomed = [(bench.tree.directory(index),) for index in range(count)]
    ours, theirs = (one_by_one(partial(subject.answer, "delete"), doomed) for subject in bench.subjects)
    yield from pair("delete", bench, [ours, theirs])


def pair(row: str, bench: Bench, timings: list[Timing]) -> Iterator[Result]:
    ours, theirs = timings
    assert bench.peer
    yield timed(row, bench.size, bench.ours.name, ours)
    yield timed(row, bench.size, bench.peer.name, theirs, ours=ours)


def everything(bench: Bench) -> Iterator[Result]:
    """Move and delete the one directory that contains the whole tree, putting it back untimed."""
    ours = bench.ours
    top = bench.tree.top
    repeats = 50 if bench.quick else 200
    whole = ours.answer("snapshot")

    def put_back() -> None:
        ours.answer("restore", whole)

    moved = one_by_one(ours.operations["move"], [(top, MOVED)] * repeats, before=put_back)
    yield timed("move all", bench.size, ours.name, moved)
    deleted = one_by_one(ours.operations["delete"], [(top,)] * repeats, before=put_back)
    yield timed("delete all", bench.size, ours.name, deleted)
    put_back()
