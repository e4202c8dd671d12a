"""A tree of files in a host directory, and other programs' operations on it: scan, read, add to git or tar."""

from __future__ import annotations

import os
import random
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.timing import Sampler, nanoseconds
from benchmarks.workload import Tree

SETTLED = 0.05
"""Seconds from a change to the next scan. Files changed within a tick of the clock (about 12 ms) before a scan are
read again by the next one, in weakfs and in git alike: without this pause, the warm case would not be measured."""


def plain_environment() -> dict[str, str]:
    """Return an environment in which git and tar have their defaults, whatever the user's configuration."""
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


BY_PATHS, BY_DESCRIPTORS = "scan by paths", "scan by descriptors"
SCANS = [BY_PATHS, BY_DESCRIPTORS]
READING = "read all bytes"


def settle() -> None:
    """Let the disk catch up, so that its delays affect no measurement, and let the clock advance."""
    os.sync()
    time.sleep(SETTLED)


class HostTree:
    """The files of a `Tree` on disk, at `root`."""

    def __init__(self, root: Path, tree: Tree) -> None:
        self.root = root
        self.tree = tree
        self._versions = 0

    def lay(self) -> None:
        """Write all files."""
        for index in range(0, self.tree.size, 20):
            os.makedirs(f"{self.root}{self.tree.path(index)}".rpartition("/")[0], exist_ok=True)
        for path, text in self.tree.files():
            Path(f"{self.root}{path}").write_text(text)
        settle()

    def change(self, count: int) -> dict[str, str]:
        """Write other text of the same size to this many files, different ones each time; return the old contents."""
        self._versions += 1
        held = {}
        for index in random.Random(self._versions).sample(range(self.tree.size), count):
            path = self.tree.path(index)
            file = Path(f"{self.root}{path}")
            held[path] = file.read_text()
            file.write_text(self.tree.text(index).replace("quick brown", f"slow {self._versions:06}"))
        settle()
        return held

    def text(self, path: str) -> str:
        return Path(f"{self.root}{path}").read_text()

    def stamps(self) -> dict[str, tuple[int, int]]:
        """Return, for each file, the values that change when it is written: its inode and its change time."""
        stamps = {}
        for path, _ in self.tree.files():
            found = os.lstat(f"{self.root}{path}")
            stamps[path] = (found.st_ino, found.st_ctime_ns)
        return stamps

    def scans(self) -> dict[str, Sampler]:
        """Return the two bare scans to be timed: the system calls for each entry, without keeping the results."""
        return {
            BY_PATHS: partial(nanoseconds, self.scan_by_paths),
            BY_DESCRIPTORS: partial(nanoseconds, self.scan_by_descriptors),
        }

    def scan_by_paths(self) -> int:
        """Get the status of every entry by its whole path, as is usual with `os.scandir`."""
        count, folders = 0, [str(self.root)]
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    count += 1
                    if stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode):
                        folders.append(entry.path)
        return count

    def scan_by_descriptors(self) -> int:
        """Get the status of every entry, with every directory opened relative to its parent: no link is followed."""
        top = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            return scan_open(top)
        finally:
            os.close(top)

    def read_all(self) -> int:
        """Get the status of every entry and read every file in full, one after the other, keeping nothing."""
        size, folders = 0, [str(self.root)]
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        folders.append(entry.path)
                        continue
                    descriptor = os.open(entry.path, os.O_RDONLY)
                    size += len(os.read(descriptor, found.st_size + 1))
                    os.close(descriptor)
        return size

    def write_by_hand(self, path: str, text: str) -> None:
        """Write one file as a careful program does: a temporary file next to it, and a rename."""
        target = f"{self.root}{path}"
        temporary = f"{target}.tmp"
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, target)


def scan_open(folder: int) -> int:
    count, below = 0, []
    with os.scandir(folder) as entries:
        for entry in entries:
            count += 1
            if stat.S_ISDIR(entry.stat(follow_symlinks=False).st_mode):
                below.append(entry.name)
    for name in below:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
        count += scan_open(descriptor)
        os.close(descriptor)
    return count


class Git:
    """git with a repository and an index of its own outside the tree, as `git init` makes them."""

    name = "git"

    def __init__(self, repository: Path, root: Path) -> None:
        self.repository = repository
        self.root = root

    def begin(self) -> None:
        """Make an empty repository in place of the previous one."""
        shutil.rmtree(self.repository, ignore_errors=True)
        self._run("init", "--quiet")

    def snapshot(self) -> str:
        """Run `git add -A && git write-tree`: two programs, as is usual."""
        self._run("add", "-A")
        return self._run("write-tree")

    def _run(self, *arguments: str) -> str:
        command = ["git", f"--git-dir={self.repository}", f"--work-tree={self.root}", *arguments]
        return run(command, folder=self.root).strip()


class Tar:
    """tar of the whole tree into one file, which it does not fsync."""

    def __init__(self, archive: Path, root: Path, *, compressed: bool) -> None:
        self.name = "tar -z" if compressed else "tar"
        self.archive = archive
        self.root = root
        self.create = "-czf" if compressed else "-cf"

    def begin(self) -> None:
        self.archive.unlink(missing_ok=True)

    def snapshot(self) -> None:
        # Into a real file: GNU tar reads nothing if the archive is /dev/null.
        command = ["tar", self.create, str(self.archive), "-C", str(self.root), "."]
        run(command, folder=self.root)


def run(command: list[str], *, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, env=plain_environment(), capture_output=True, text=True, check=True)
    return done.stdout


Archiver = Git | Tar


def archivers(home: Path, root: Path) -> Iterator[Archiver]:
    """Yield the archivers that are installed on this machine."""
    if shutil.which("git"):
        yield Git(home / "repository", root)
    if shutil.which("tar"):
        yield Tar(home / "plain.tar", root, compressed=False)
        yield Tar(home / "small.tar", root, compressed=True)
