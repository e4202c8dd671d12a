"""One adapter for each peer, imported only in the environment that contains the peer."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.subject import Subject


@dataclass(frozen=True)
class Adapter:
    """The module of a peer's adapter, and the kind of peer: goals differ for a core written in Rust."""

    module: str
    class_name: str
    native: bool = False

    def load(self) -> Callable[[], Subject]:
        subject: Callable[[], Subject] = getattr(importlib.import_module(self.module), self.class_name)
        return subject


ADAPTERS = {
    "fsspec": Adapter("benchmarks.peers.fsspec_memory", "FsspecMemory"),
    "deepagents": Adapter("benchmarks.peers.deepagents_state", "DeepagentsState"),
    "agentfs-sdk": Adapter("benchmarks.peers.agentfs", "Agentfs", native=True),
    "bashkit": Adapter("benchmarks.peers.bashkit_vfs", "Bashkit", native=True),
    "mem-sandbox": Adapter("benchmarks.peers.mem_sandbox", "MemSandbox"),
}
