"""The rows, one module per group: each takes a `Bench` and yields results. `GROUPS` says when each runs."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from benchmarks.results import Result
from benchmarks.subject import Subject
from benchmarks.workload import Tree

if TYPE_CHECKING:
    from benchmarks.ours import Weakfs


@dataclass(frozen=True)
class Bench:
    """The subjects of a row: ours and optionally a peer, both containing the same tree.

    `size` is the size shown in the table; a peer with a limit gets the largest tree that fits.
    """

    size: int
    tree: Tree
    ours: Weakfs
    peer: Subject | None
    quick: bool = False

    @property
    def subjects(self) -> list[Subject]:
        return [self.ours, self.peer] if self.peer else [self.ours]


@dataclass(frozen=True)
class Group:
    """When a module of rows runs: together with each peer or with ours only, and at which sizes."""

    beside_peers: bool
    alone: bool
    sizes: tuple[int, ...]
    seeded: bool = True

    def measure(self, name: str, bench: Bench) -> Iterator[Result]:
        return cast("Iterator[Result]", importlib.import_module(f"benchmarks.rows.{name}").measure(bench))


PAIRED = (100, 1_000, 10_000, 100_000)
ALL = (*PAIRED, 1_000_000)

GROUPS: dict[str, Group] = {
    "operations": Group(beside_peers=True, alone=True, sizes=ALL),
    "snapshots": Group(beside_peers=True, alone=True, sizes=ALL),
    "pauses": Group(beside_peers=False, alone=True, sizes=(10_000, 100_000, 1_000_000)),
    "memory": Group(beside_peers=False, alone=True, sizes=(100, 10_000, 100_000)),
    "directories": Group(beside_peers=True, alone=True, sizes=ALL),
    "grep": Group(beside_peers=True, alone=True, sizes=(10_000,), seeded=False),
    "names": Group(beside_peers=False, alone=True, sizes=(10_000,), seeded=False),
    "editing": Group(beside_peers=False, alone=True, sizes=(0,), seeded=False),
    "patches": Group(beside_peers=False, alone=True, sizes=(0,), seeded=False),
    "blame": Group(beside_peers=False, alone=True, sizes=(0,), seeded=False),
    "calls": Group(beside_peers=False, alone=True, sizes=(1_000,), seeded=False),
    "many": Group(beside_peers=False, alone=True, sizes=(1_000,), seeded=False),
    "persistence": Group(beside_peers=False, alone=True, sizes=(1_000, 10_000, 100_000), seeded=False),
    "host": Group(beside_peers=False, alone=True, sizes=(5_000, 50_000), seeded=False),
    "host_processor": Group(beside_peers=False, alone=True, sizes=(5_000, 50_000), seeded=False),
    "imports": Group(beside_peers=False, alone=True, sizes=(0,), seeded=False),
}
"""In the order in which they run: deleting directories comes after everything that needs them."""
