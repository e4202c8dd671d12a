"""deepagents' StateBackend: one flat dict in LangGraph's state.

Outside a running graph the backend refuses to work, so it gets what a graph provides: LangGraph's own
channel and LangGraph's own read of it. A write is followed by the channel's update, which is what happens at the
end of a step. The rest of a step (scheduling, checkpoints) is not counted, to the peer's advantage.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from types import SimpleNamespace
from typing import Any

from deepagents.backends import StateBackend
from deepagents.middleware.filesystem import _file_data_delta_reducer
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._constants import CONFIG_KEY_READ, CONFIG_KEY_SEND
from langgraph.channels.delta import DeltaChannel
from langgraph.pregel._algo import local_read

from benchmarks.subject import SyncSubject
from benchmarks.workload import Tree


class DeepagentsState(SyncSubject):
    name = "deepagents"

    def __init__(self) -> None:
        self.channel = DeltaChannel(_file_data_delta_reducer, dict)
        self.channel.update([{}])
        self.task = SimpleNamespace(writes=deque())
        read = partial(local_read, None, {"files": self.channel}, {}, self.task)
        configurable = {CONFIG_KEY_READ: read, CONFIG_KEY_SEND: self.task.writes.extend}
        var_child_runnable_config.set({"configurable": configurable})
        backend = self.backend = StateBackend()
        self.operations = {
            "write": self.write,
            "read": lambda path: backend.read(path).file_data["content"],
            "read_bytes": lambda path: backend.download_files([path])[0].content,
            "list": lambda path: backend.ls(path).entries,
            "delete": self.delete,
            "grep": lambda pattern: len(backend.grep(pattern).matches),
        }

    def seed(self, tree: Tree) -> None:
        self.backend.upload_files([(path, text.encode()) for path, text in tree.files()])
        self.end_step()

    def write(self, path: str, text: str) -> Any:
        self.backend.write(path, text)
        self.end_step()

    def delete(self, path: str) -> Any:
        self.backend.delete(path)
        self.end_step()

    def end_step(self) -> None:
        self.channel.update([update for _, update in self.task.writes])
        self.task.writes.clear()
