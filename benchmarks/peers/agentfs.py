"""agentfs-sdk: tables in a Turso database, here in memory; every call is awaited and committed."""

from __future__ import annotations

import re

from agentfs_sdk import AgentFS, AgentFSOptions

from benchmarks.subject import AsyncSubject
from benchmarks.workload import Tree


class Agentfs(AsyncSubject):
    name = "agentfs-sdk"
    capacity = 10_000
    why_capacity = "filling it takes minutes"

    def __init__(self) -> None:
        super().__init__()
        self.agent = self.loop.run_until_complete(AgentFS.open(AgentFSOptions(path=":memory:")))
        self.fs = self.agent.fs
        self.operations = {
            "write": self.fs.write_file,
            "read": self.fs.read_file,
            "read_bytes": lambda path: self.fs.read_file(path, encoding=None),
            "stat": self.fs.stat,
            "list": self.fs.readdir,
            "delete": lambda path: self.fs.rm(path, recursive=True),
            "move": self.fs.rename,
            "grep": self.grep,
        }

    def seed(self, tree: Tree) -> None:
        self.perform("write", list(tree.files()))

    async def grep(self, pattern: str) -> int:
        """Search as its users have to: walk, read every file, search with `re`."""
        look = re.compile(pattern, re.MULTILINE)
        found = 0
        pending = ["/"]
        while pending:
            directory = pending.pop()
            for name in await self.fs.readdir(directory):
                path = f"{directory.rstrip('/')}/{name}"
                if "." not in name:
                    pending.append(path)
                    continue
                text = await self.fs.read_file(path)
                if look.search(text):
                    found += sum(1 for line in text.split("\n") if look.search(line))
        return found

    def close(self) -> None:
        self.loop.run_until_complete(self.agent.close())
        super().close()
