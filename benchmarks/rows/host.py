"""Snapshot and restore a host directory, compared with a bare scan, reading all files, git and tar.

Everything that is read is in the system's cache, because it was just written. Our writes are on the disk when they
return; git and tar leave that to the system. The disk has caught up before each measurement that writes.
"""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from benchmarks.host_tree import READING, Archiver, Git, HostTree, archivers, settle
from benchmarks.results import Result, together
from benchmarks.rows import Bench, host_calls
from benchmarks.subject import OURS
from benchmarks.timing import Sampler, Timing, in_turn, nanoseconds
from benchmarks.workload import Tree
from weakfs import HostFilesystem

LINES = 45
"""Files of about 2 kB."""

CHANGED = 10

AS_GIT, AS_TAR = "weakfs as git", "weakfs as tar"
KINDS: dict[str, Literal["tree", "git", "tar"]] = {OURS: "tree", AS_GIT: "git", AS_TAR: "tar"}

FIRST_OF_A_PROCESS = """
import sys
from time import perf_counter_ns as now
from weakfs import HostFilesystem
start = now()
HostFilesystem(sys.argv[1], store=sys.argv[2]).snapshot()
print(now() - start)
"""


def measure(bench: Bench) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="weakfs-bench-") as folder:
        host = HostTree(Path(folder) / "tree", Tree(bench.size, lines=LINES))
        host.lay()
        yield from Snapshots(bench, Path(folder), host).rows()
        yield from Restores(bench, Path(folder), host).rows()
        yield from host_calls.measure(bench, Path(folder), host)


class Snapshots:
    """Rows of taking snapshots: the very first one, with some files changed, with none, and in a new process."""

    def __init__(self, bench: Bench, home: Path, host: HostTree) -> None:
        self.size = bench.size
        self.repeats = 3 if bench.quick else 9
        self.cold_repeats = 2 if bench.quick else 5
        self.home = home
        self.host = host
        self.archivers = list(archivers(home, host.root))
        self.scans = host.scans()

    def rows(self) -> Iterator[Result]:
        missing = {"git", "tar"} - {archiver.name for archiver in self.archivers}
        yield from (Result("host cold", self.size, name, None, note="it is not on this machine") for name in missing)
        yield from together("host cold", self.size, self.cold())
        kept = {name: self.open(name) for name in KINDS}
        for fs in kept.values():
            fs.snapshot()
        ours = {name: alone(partial(nanoseconds, fs.snapshot)) for name, fs in kept.items()}
        git = {one.name: alone(partial(nanoseconds, one.snapshot)) for one in self.archivers if isinstance(one, Git)}
        same = {OURS: ours[OURS], **self.scans}
        yield from together("host unchanged", self.size, in_turn(same, repeats=self.repeats))
        changed = {**ours, **self.scans, **git}
        yield from together("host changed", self.size, in_turn(changed, repeats=self.repeats, before=self.change))
        new: dict[str, Sampler] = {OURS: self.in_a_new_process, **self.scans}
        yield from together("host new process", self.size, in_turn(new, repeats=self.repeats, before=self.change))

    def open(self, name: str) -> HostFilesystem:
        return HostFilesystem(self.host.root, snapshots=KINDS[name], store=self.store(name))

    def store(self, name: str) -> Path:
        return self.home / "stores" / name

    def change(self) -> None:
        self.host.change(CHANGED)

    def cold(self) -> dict[str, Timing]:
        """Measure everything that starts from nothing: a new store, a new repository, a new archive."""
        measured: dict[str, Sampler] = {name: partial(self.ours_cold, name) for name in KINDS}
        measured[READING] = alone(partial(nanoseconds, self.host.read_all))
        measured |= {archiver.name: partial(self.theirs_cold, archiver) for archiver in self.archivers}
        return in_turn(measured, repeats=self.cold_repeats)

    def ours_cold(self, name: str) -> float:
        shutil.rmtree(self.store(name), ignore_errors=True)
        gc.collect()
        os.sync()
        return nanoseconds(lambda: self.open(name).snapshot())

    def theirs_cold(self, archiver: Archiver) -> float:
        archiver.begin()
        os.sync()
        return nanoseconds(archiver.snapshot)

    def in_a_new_process(self) -> float:
        """Open a directory with its existing store, and take a snapshot; imports are not counted."""
        command = [sys.executable, "-c", FIRST_OF_A_PROCESS, str(self.host.root), str(self.store(OURS))]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


class Restores:
    """Rows of restoring a snapshot that was just taken."""

    def __init__(self, bench: Bench, home: Path, host: HostTree) -> None:
        self.size = bench.size
        self.repeats = 3 if bench.quick else 9
        self.host = host
        self.fs = HostFilesystem(host.root, store=home / "stores" / "restores")
        self.wanted = self.fs.snapshot()
        self.scans = host.scans()

    def rows(self) -> Iterator[Result]:
        yield Result("count restored", self.size, OURS, self.count_written())
        for row, before, dry_run in (
            ("host restore", self.changed, False),
            ("host restore nothing", self.kept, False),
            ("host dry run", self.changed, True),
        ):
            ours = partial(nanoseconds, partial(self.restore, dry_run=dry_run))
            yield from together(
                row, self.size, in_turn({OURS: ours, **self.scans}, repeats=self.repeats, before=before)
            )

    def restore(self, *, dry_run: bool = False) -> None:
        self.fs.restore(self.wanted, dry_run=dry_run)

    def kept(self) -> None:
        """Take the snapshot to restore. Everything restored before has settled, and is in the stat cache."""
        settle()
        self.wanted = self.fs.snapshot()

    def changed(self) -> dict[str, str]:
        self.kept()
        return self.host.change(CHANGED)

    def count_written(self) -> int:
        """Count the files that a restore of ten wrote, according to the system's status of every file."""
        held = self.changed()
        before = self.host.stamps()
        self.restore()
        after = self.host.stamps()
        assert {path: self.host.text(path) for path in held} == held, "a restored file does not hold what it held"
        return sum(before[path] != after[path] for path in before)


def alone(measured: Sampler) -> Sampler:
    """Let the disk catch up first, so that no fsync pays for what another subject wrote."""

    def sample() -> float:
        os.sync()
        return measured()

    return sample
