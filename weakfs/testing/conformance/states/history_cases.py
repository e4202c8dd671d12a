"""Long histories: after many random changes, the files equal those in a dictionary with the same changes."""

from __future__ import annotations

from random import Random
from typing import TypeAlias

import pytest

from weakfs.filesystem import Filesystem, FilesystemSnapshot, Limits
from weakfs.testing.conformance.harness import FilesystemCases

# Path to content; `None` is a directory. The root is not included.
Model: TypeAlias = dict[str, bytes | None]

NAMES = ("a", "b", "c.txt", "d e", "é")
STEPS = 150


def parents(path: str) -> list[str]:
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def put(model: Model, path: str, content: bytes | None) -> None:
    for parent in parents(path):
        model[parent] = None
    model[path] = content


def below(model: Model, path: str) -> list[str]:
    return [other for other in model if other == path or other.startswith(f"{path}/")]


class History:
    """One filesystem and the dictionary that models it."""

    def __init__(self, fs: Filesystem, random: Random) -> None:
        self.fs, self.random = fs, random
        self.model: Model = {}
        self.snapshots: list[tuple[FilesystemSnapshot, Model]] = []
        self.steps = [self.write, self.append, self.splice, self.mkdir, self.delete, self.move, self.copy]
        self.steps += [self.snapshot, self.restore]

    def path(self) -> str:
        if self.model and self.random.random() < 0.5:
            return self.random.choice(sorted(self.model))
        return "".join(f"/{self.random.choice(NAMES)}" for _ in range(self.random.randint(1, 4)))

    def content(self) -> bytes:
        return self.random.randbytes(self.random.randint(0, 20))

    def step(self) -> bool:
        """Make one change; return whether it was possible. An impossible change must not have changed anything."""
        before = self.fs.tree().fingerprint
        try:
            self.random.choice(self.steps)()
        except (OSError, ValueError):
            assert self.fs.tree().fingerprint == before
            return False
        return True

    def write(self) -> None:
        path, content = self.path(), self.content()
        self.fs.write_bytes(path, content)
        put(self.model, path, content)

    def append(self) -> None:
        path, content = self.path(), self.content()
        self.fs.write_bytes(path, content, mode="append")
        put(self.model, path, (self.model.get(path) or b"") + content)

    def splice(self) -> None:
        path, content = self.path(), self.content()
        old = self.fs.read_bytes(path).content
        start, stop = sorted(self.random.randint(0, len(old)) for _ in range(2))
        self.fs.splice(path, [(start, stop, content)])
        put(self.model, path, old[:start] + content + old[stop:])

    def mkdir(self) -> None:
        path = self.path()
        self.fs.mkdir(path)
        put(self.model, path, None)

    def delete(self) -> None:
        path = self.path()
        gone = below(self.model, path)
        assert self.fs.delete(path, recursive=True) == len(gone)
        for other in gone:
            del self.model[other]

    def move(self) -> None:
        source, destination = self.path(), self.path()
        self.fs.move(source, destination)
        moved = {other: self.model.pop(other) for other in below(self.model, source)}
        for other, content in moved.items():
            put(self.model, destination + other.removeprefix(source), content)

    def copy(self) -> None:
        source, destination = self.path(), self.path()
        self.fs.copy(source, destination)
        for other in below(self.model, source):
            put(self.model, destination + other.removeprefix(source), self.model[other])

    def snapshot(self) -> None:
        self.snapshots.append((self.fs.snapshot(), dict(self.model)))

    def restore(self) -> None:
        if self.snapshots:
            snapshot, model = self.random.choice(self.snapshots)
            self.fs.restore(snapshot)
            self.model = dict(model)

    def check(self, fresh: Filesystem) -> None:
        """Compare all queries with the model, and with `fresh`, to which the same files are written directly."""
        files = {path: content for path, content in self.model.items() if content is not None}
        walked = {entry.path: entry.is_directory for entry in self.fs.walk()}
        assert walked == {path: content is None for path, content in self.model.items()}
        assert {path: self.fs.read_bytes(path).content for path in files} == files
        statistics = self.fs.statistics()
        assert statistics.total_size == sum(map(len, files.values()))
        assert (statistics.file_count, statistics.node_count) == (len(files), len(self.model))
        for path in sorted(self.model):
            content = self.model[path]
            if content is None:
                fresh.mkdir(path)
            else:
                fresh.write_bytes(path, content)
        assert self.fs.tree().digest == fresh.tree().digest
        assert self.fs.tree().fingerprint == fresh.tree().fingerprint


class HistoryCases(FilesystemCases):
    @pytest.mark.parametrize("seed", range(12))
    def test_a_random_history_agrees_with_a_dictionary(self, fs: Filesystem, seed: int) -> None:
        history = History(fs, Random(seed))
        done = sum(history.step() for _ in range(STEPS))
        assert done > STEPS // 3
        history.check(self.make_fs())

    @pytest.mark.parametrize("seed", range(6))
    def test_a_random_history_respects_the_limits(self, seed: int) -> None:
        limits = Limits(max_file_size=30, max_path_depth=4, max_total_size=120, max_node_count=12)
        fs = self.make_fs(limits=limits)
        history = History(fs, Random(seed))
        for _ in range(STEPS):
            history.step()
            statistics = fs.statistics()
            assert statistics.total_size <= 120
            assert statistics.node_count <= 12
        assert all(path.count("/") <= 4 for path in history.model)
        assert all(len(content or b"") <= 30 for content in history.model.values())
        history.check(self.make_fs())
