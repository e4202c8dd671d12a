"""Measure in this process: `python -m benchmarks.worker SUBJECT SIZE GROUP...` prints one JSON result per line.

A process measures one size of one pair. The peer's tree is frozen out of the garbage collector before ours is
made: our operations pay for collecting our own objects, not for visiting those of the peer.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Iterator

from benchmarks.ours import Weakfs
from benchmarks.peers import ADAPTERS
from benchmarks.results import Result
from benchmarks.rows import GROUPS, Bench
from benchmarks.subject import OURS, Subject
from benchmarks.workload import DIRECTORY_SIZE, Tree

KEPT_VERSIONS = 1_000
TOP = "/all"
"""The location of the tree when ours is measured alone, so that one directory contains everything."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker")
    parser.add_argument("subject", choices=[OURS, *ADAPTERS])
    parser.add_argument("size", type=int)
    parser.add_argument("groups", nargs="+", choices=list(GROUPS))
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    assert gc.isenabled()
    for result in measure(asked.subject, asked.size, asked.groups, quick=asked.quick):
        print(json.dumps(result.as_json()), flush=True)


def measure(name: str, size: int, groups: list[str], *, quick: bool) -> Iterator[Result]:
    """Run the groups that share a seeded tree on one tree, and each of the others on its own."""
    together = [group for group in GROUPS if group in groups and GROUPS[group].seeded]
    for batch in [together, *([group] for group in groups if group not in together)]:
        if batch:
            yield from measure_on_one_tree(name, size, batch, quick=quick)


def measure_on_one_tree(name: str, size: int, groups: list[str], *, quick: bool) -> Iterator[Result]:
    peer = None if name == OURS else ADAPTERS[name].load()()
    fitting = size if peer is None or peer.capacity is None else min(size, peer.capacity)
    if peer and fitting < size * 0.99:
        yield from (Result(group, size, name, None, note=peer.why_capacity) for group in groups)
        return
    bench = Bench(size, Tree(fitting, top="" if peer else TOP), Weakfs(), peer, quick)
    if GROUPS[groups[0]].seeded:
        fill(bench)
    for group in groups:
        yield from GROUPS[group].measure(group, bench)
    if peer:
        peer.close()


def fill(bench: Bench) -> None:
    """Seed the peer, freeze it, seed ours, store 1,000 versions, and check that both contain the tree."""
    if bench.peer:
        bench.peer.seed(bench.tree)
        check(bench.peer, bench.tree)
        gc.collect()
        gc.freeze()
    bench.ours.seed(bench.tree)
    check(bench.ours, bench.tree)
    bench.ours.keep_versions(bench.tree, KEPT_VERSIONS)


def check(subject: Subject, tree: Tree) -> None:
    last = tree.size - 1
    assert subject.answer("read", tree.path(last)) == tree.text(last), f"{subject.name} lacks a file"
    assert len(subject.answer("list", tree.directory(0))) == DIRECTORY_SIZE, f"{subject.name} lists wrongly"


if __name__ == "__main__":
    main()
