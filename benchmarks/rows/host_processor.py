"""Processor time on a host directory, compared with the same work by hand, and system calls of a write and a read.

Processor time, including that of started programs, varies less than wall-clock time if a disk is involved or other
programs run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from benchmarks import system_calls
from benchmarks.host_tree import BY_DESCRIPTORS, HostTree
from benchmarks.results import Result, together
from benchmarks.rows import Bench
from benchmarks.rows.grep import LITERAL, Ripgrep
from benchmarks.rows.host_calls import TEXT
from benchmarks.subject import OURS
from benchmarks.timing import Sampler, Timing, in_turn, processor_time
from benchmarks.workload import Tree
from weakfs import HostFilesystem, Session

LINES = 45
"""Files of about 2 kB."""

CHANGED = 10

AT_ONCE = 40
"""How many small calls are measured together."""

BARE_LOOP = "bare loop"
"""Every file opened in its directory without following a link, and read; nothing is searched."""

RENAME = "file and rename"
"""A temporary file and a rename: the replaced file is not kept."""

JOURNALED = "same calls"
"""A temporary file and a rename, with a directory, a log and a link to the old file that last until it is done."""

OPEN_READ = "open().read()"
WARM = "second snapshot"

TWO_SNAPSHOTS = """
import sys
from time import process_time_ns as now
from weakfs import HostFilesystem
fs = HostFilesystem(sys.argv[1], store=sys.argv[2])
for _ in range(2):
    start = now()
    fs.snapshot()
    print(now() - start)
"""


def measure(bench: Bench) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="weakfs-bench-") as folder:
        host = HostTree(Path(folder) / "tree", Tree(bench.size, lines=LINES))
        host.lay()
        yield from Processor(bench, Path(folder), host).rows()


class Processor:
    """Rows of one tree, in a session that knows it from a snapshot."""

    def __init__(self, bench: Bench, home: Path, host: HostTree) -> None:
        self.size = bench.size
        self.repeats = 5 if bench.quick else 15
        self.host = host
        self.home = home
        self.store = home / "store"
        self.session = Session()
        self.fs = HostFilesystem(host.root, session=self.session, store=self.store)
        self.fs.snapshot()
        self.paths = list(dict.fromkeys(host.tree.sample_paths(4 * AT_ONCE, seed=13)))

    def rows(self) -> Iterator[Result]:
        yield from self.grep()
        yield from self.read()
        yield from self.write()
        yield from self.system_calls()
        yield from self.rollback()
        yield from self.new_process()

    def grep(self) -> Iterator[Result]:
        """Search all files on the disk. Nothing is kept from an earlier search."""
        assert len(self.fs.grep(LITERAL, max_matches=-1)) == self.host.tree.needles
        measured = {OURS: used(partial(self.fs.grep, LITERAL)), BARE_LOOP: used(partial(read_below, self.host.root))}
        if shutil.which("rg"):
            measured["ripgrep"] = used(partial(Ripgrep(self.host.root).grep, LITERAL))
        yield from together("host grep", self.size, in_turn(measured, repeats=self.repeats))

    def read(self) -> Iterator[Result]:
        measured = {OURS: each(self.fs.read, self.paths), OPEN_READ: each(self.read_by_hand, self.paths)}
        yield from together("host read", self.size, in_turn(measured, repeats=2 * self.repeats))

    def read_by_hand(self, path: str) -> str:
        with open(f"{self.host.root}{path}", encoding="utf-8") as file:
            return file.read()

    def write(self) -> Iterator[Result]:
        """Write files that were written before."""
        journaled = Journaled(self.host.root, self.home / "journals")
        measured = {
            OURS: each(lambda path: self.fs.write(path, TEXT), self.paths),
            RENAME: each(lambda path: self.host.write_by_hand(path, TEXT), self.paths),
            JOURNALED: each(journaled.write, self.paths),
        }
        yield from together("host write used", self.size, in_turn(measured, repeats=2 * self.repeats))
        self.fs.snapshot()

    def system_calls(self) -> Iterator[Result]:
        """Count in a small tree: the size makes no difference, and tracing is slow."""
        small = HostTree(self.home / "small", Tree(20, lines=LINES))
        small.lay()
        for operation in ("write", "read"):
            row = f"count calls, {operation}"
            if system_calls.is_available():
                counted = system_calls.count(small.root, self.home / "small store", operation, small.tree.path(0))
                yield Result(row, self.size, OURS, counted)
            else:
                yield Result(row, self.size, OURS, None, note="strace cannot be used on this machine")

    def rollback(self) -> Iterator[Result]:
        """Roll the session back after another program changed ten files."""

        def change() -> None:
            self.session.snapshot("before")
            self.host.change(CHANGED)

        measured = {
            OURS: used(lambda: self.session.rollback("before")),
            BY_DESCRIPTORS: used(self.host.scan_by_descriptors),
        }
        yield from together("host rollback", self.size, in_turn(measured, repeats=self.repeats, before=change))

    def new_process(self) -> Iterator[Result]:
        """Take two snapshots in a new process, whose start and imports are not counted."""
        command = [sys.executable, "-c", TWO_SNAPSHOTS, str(self.host.root), str(self.store)]
        runs = [
            [float(taken) for taken in subprocess.run(command, capture_output=True, check=True).stdout.split()]
            for _ in range(self.repeats)
        ]
        first, warm = (Timing.of(samples) for samples in zip(*runs, strict=True))
        yield from together("host first of a process", self.size, {OURS: first, WARM: warm})


class Journaled:
    """Writes by hand that could be undone: the same system calls as ours, in as few lines as possible."""

    def __init__(self, root: Path, journals: Path) -> None:
        journals.mkdir()
        self.root = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        self.journal = str(journals / "0")

    def __del__(self) -> None:
        os.close(self.root)

    def write(self, path: str) -> None:
        above, _, name = path[1:].rpartition("/")
        parent = os.open(above, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=self.root)
        before = os.fstat(parent)
        os.mkdir(self.journal, 0o700)
        folder = os.open(self.journal, os.O_RDONLY | os.O_DIRECTORY)
        log = os.open("log", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
        os.pwrite(log, f"create {path}.tmp\nkeep {path}\n".encode(), 0)
        os.link(name, "1", src_dir_fd=parent, dst_dir_fd=folder, follow_symlinks=False)
        file = os.open(f"{name}.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=parent)
        os.write(file, TEXT.encode())
        os.fchmod(file, 0o644)
        os.utime(file, ns=(before.st_mtime_ns, before.st_mtime_ns))
        os.close(file)
        os.rename(f"{name}.tmp", name, src_dir_fd=parent, dst_dir_fd=parent)
        os.utime(".", ns=(before.st_mtime_ns, before.st_mtime_ns), dir_fd=parent)
        os.ftruncate(log, 0)
        os.unlink("log", dir_fd=folder)
        os.unlink("1", dir_fd=folder)
        os.rmdir(self.journal)
        for descriptor in (log, folder, parent):
            os.close(descriptor)


def read_below(root: Path) -> int:
    """Read every file below a directory; return the number of bytes."""
    size, folders = 0, [os.open(root, os.O_RDONLY | os.O_DIRECTORY)]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder))
                elif entry.is_file(follow_symlinks=False):
                    file = os.open(entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
                    size += len(os.read(file, os.fstat(file).st_size + 1))
                    os.close(file)
        os.close(folder)
    return size


def used(act: Callable[[], object]) -> Sampler:
    return partial(processor_time, act)


def each(act: Callable[[str], object], paths: Iterable[str]) -> Sampler:
    """Measure one call, as the mean of several on different paths. Every sample uses the same paths."""
    chosen = list(paths)[:AT_ONCE]

    def act_on_all() -> None:
        for path in chosen:
            act(path)

    return lambda: processor_time(act_on_all) / len(chosen)
