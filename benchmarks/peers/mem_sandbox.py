"""mem-sandbox's MemoryWorkspace: a tree that each change clones and hashes in full. It needs Python 3.12."""

from __future__ import annotations

import re
from typing import Any

from mem_sandbox.core.identifiers import Revision
from mem_sandbox.workspace import (
    AnyCurrentState,
    JsonWorkspaceSnapshotCodec,
    MemoryWorkspace,
    MovePathRequest,
    NodeKind,
    RemovePathRequest,
    SandboxPath,
    WorkspaceLimits,
    WorkspaceSnapshotEntry,
    WorkspaceStats,
    WorkspaceWriteRequest,
)
from mem_sandbox.workspace.snapshot_tree import measure_workspace_entries

from benchmarks.subject import AsyncSubject
from benchmarks.workload import Tree

ROOT = "/workspace"
LIMITS = WorkspaceLimits(max_total_bytes=1 << 33, max_nodes=2_000_000, max_snapshot_bytes=1 << 33)


class MemSandbox(AsyncSubject):
    name = "mem-sandbox"
    capacity = 10_000
    why_capacity = "a single write takes about a second"

    def __init__(self) -> None:
        super().__init__()
        self.fs = MemoryWorkspace(LIMITS)
        self.operations = {
            "write": self.write,
            "read": self.read,
            "read_bytes": lambda path: self.fs.read_bytes(self.path(path)),
            "stat": lambda path: self.fs.stat(self.path(path)),
            "list": lambda path: self.fs.list(self.path(path)),
            "delete": lambda path: self.fs.remove(RemovePathRequest(self.path(path), recursive=True)),
            "move": lambda source, target: self.fs.move(MovePathRequest(self.path(source), self.path(target))),
            "grep": self.grep,
            "snapshot": self.fs.export,
            "restore": self.fs.restore,
        }

    def path(self, path: str) -> SandboxPath:
        return self.fs.resolve_path(ROOT + path)

    def seed(self, tree: Tree) -> None:
        """Restore a snapshot made by its codec: each write clones the tree, so N writes would take O(N²) time."""
        entries: dict[SandboxPath, WorkspaceSnapshotEntry] = {}
        for name, text in tree.files():
            path = self.path(name)
            entries[path] = WorkspaceSnapshotEntry(path, NodeKind.FILE, text.encode())
            parent = path.parent
            while not parent.is_root and parent not in entries:
                entries[parent] = WorkspaceSnapshotEntry(parent, NodeKind.DIRECTORY)
                parent = parent.parent
        ordered = tuple(sorted(entries.values(), key=lambda entry: entry.path.value))
        size = measure_workspace_entries(ordered)
        stats = WorkspaceStats(size.total_bytes, size.node_count, Revision.initial(), size.root_hash)
        data = JsonWorkspaceSnapshotCodec().encode(ordered, stats, LIMITS)
        self.loop.run_until_complete(self.fs.restore(data))

    async def write(self, path: str, text: str) -> None:
        await self.fs.write(WorkspaceWriteRequest(self.path(path), text.encode(), AnyCurrentState(), True))

    async def read(self, path: str) -> str:
        return (await self.fs.read_text(self.path(path))).content

    async def grep(self, pattern: str) -> int:
        """Search as its users have to: walk, read every file, search with `re`."""
        look = re.compile(pattern, re.MULTILINE)
        found = 0
        pending: list[Any] = [SandboxPath.root()]
        while pending:
            for entry in await self.fs.list(pending.pop()):
                if entry.kind is NodeKind.DIRECTORY:
                    pending.append(entry.path)
                    continue
                text = (await self.fs.read_text(entry.path)).content
                if look.search(text):
                    found += sum(1 for line in text.split("\n") if look.search(line))
        return found
