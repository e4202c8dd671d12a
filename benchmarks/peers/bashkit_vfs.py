"""bashkit: a filesystem and a shell in Rust. Either holds at most 10,000 files, including /dev/null.

Plain operations use its separate filesystem, which is faster than the one inside a shell; searches and snapshots use
the shell, which has the same tree. A snapshot costs the same whether or not anything was written since the last one.
"""

from __future__ import annotations

import shlex

from bashkit import Bash, FileSystem

from benchmarks.subject import SyncSubject
from benchmarks.workload import Tree


class Bashkit(SyncSubject):
    name = "bashkit"
    capacity = 9_980
    why_capacity = "it holds at most 10,000 files"

    def __init__(self) -> None:
        self.bash = Bash(max_memory=1 << 33)
        self.fs = FileSystem()
        self.operations = {
            "write": lambda path, text: self.fs.write_file(path, text.encode()),
            "read": lambda path: self.fs.read_file(path).decode(),
            "read_bytes": self.fs.read_file,
            "stat": self.fs.stat,
            "list": self.fs.read_dir,
            "delete": lambda path: self.fs.remove(path, True),
            "move": self.fs.rename,
            "grep": self.grep,
            "snapshot": self.bash.snapshot,
            "restore": self.bash.restore_snapshot,
        }

    def seed(self, tree: Tree) -> None:
        for filesystem in (self.fs, self.bash.fs()):
            for index in range(tree.directories):
                filesystem.mkdir(tree.directory(index), True)
            for path, text in tree.files():
                filesystem.write_file(path, text.encode())

    def grep(self, pattern: str) -> int:
        result = self.bash.execute_sync(f"grep -rnP {shlex.quote(pattern)} /dir* | wc -l")
        return int(result.stdout)
