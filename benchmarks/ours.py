"""weakfs itself, through its public names only."""

from __future__ import annotations

from benchmarks.subject import OURS, SyncSubject
from benchmarks.workload import Tree
from weakfs import InMemoryFilesystem, Session


class Weakfs(SyncSubject):
    name = OURS

    def __init__(self) -> None:
        self.session = Session()
        self.fs = fs = InMemoryFilesystem(self.session)
        self.kept: list[object] = []
        self.operations = {
            "write": fs.write,
            "read": lambda path: fs.read(path).content,
            "read_bytes": lambda path: fs.read_bytes(path).content,
            "stat": fs.stat,
            "list": fs.list,
            "delete": lambda path: fs.delete(path, recursive=True),
            "move": fs.move,
            "grep": lambda pattern: len(fs.grep(pattern)),
            "snapshot": self.session.snapshot,
            "restore": self.session.rollback,
            "fork": self.session.fork,
        }

    def seed(self, tree: Tree) -> None:
        for path, text in tree.files():
            self.fs.write(path, text)

    def keep_versions(self, tree: Tree, count: int) -> None:
        """Write `count` times and keep a snapshot of each version, as a session of some length would."""
        for number, path in enumerate(tree.sample_paths(count, seed=11)):
            self.fs.write(path, f"version {number} of this file\n" * 5)
            self.kept.append(self.session.snapshot())
