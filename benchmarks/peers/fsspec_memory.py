"""fsspec's MemoryFileSystem: one flat dict of BytesIO objects, no history."""

from __future__ import annotations

import re

from fsspec.implementations.memory import MemoryFileSystem

from benchmarks.subject import SyncSubject
from benchmarks.workload import Tree


class FsspecMemory(SyncSubject):
    name = "fsspec"

    def __init__(self) -> None:
        self.fs = MemoryFileSystem(global_store=False, skip_instance_cache=True)
        self.operations = {
            "write": lambda path, text: self.fs.pipe_file(path, text.encode()),
            "read": lambda path: self.fs.cat_file(path).decode(),
            "read_bytes": self.fs.cat_file,
            "stat": self.fs.info,
            "list": self.fs.ls,
            "delete": lambda path: self.fs.rm(path, recursive=True),
            "move": lambda source, target: self.fs.mv(source, target, recursive=True),
            "grep": self.grep,
        }

    def seed(self, tree: Tree) -> None:
        for path, text in tree.files():
            self.fs.pipe_file(path, text.encode())

    def grep(self, pattern: str) -> int:
        """Search as its users have to: it has no grep, so read every file and search with `re`."""
        look = re.compile(pattern.encode(), re.MULTILINE)
        found = 0
        for path in self.fs.find("/"):
            content = self.fs.cat_file(path)
            if look.search(content):
                found += sum(1 for line in content.split(b"\n") if look.search(line))
        return found
