"""A run of a graph that kills its process in the second step: `python -m ... URL`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from langgraph.graph import StateGraph
from typing_extensions import TypedDict

import weakfs.storage
from weakfs.integrations.langgraph import StorageSaver

CONFIG: Any = {"configurable": {"thread_id": "chat"}}


class State(TypedDict):
    steps: list[str]


def graph(saver: StorageSaver, *, kills: bool) -> Any:
    """Return a graph of three steps that each add their name."""

    def first(state: State) -> State:
        return {"steps": [*state["steps"], "first"]}

    def second(state: State) -> State:
        if kills:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"steps": [*state["steps"], "second"]}

    def third(state: State) -> State:
        return {"steps": [*state["steps"], "third"]}

    made = StateGraph(State)
    made.add_node("first", first)
    made.add_node("second", second)
    made.add_node("third", third)
    made.set_entry_point("first")
    made.add_edge("first", "second")
    made.add_edge("second", "third")
    return made.compile(checkpointer=saver)


if __name__ == "__main__":
    graph(StorageSaver(weakfs.storage.open(sys.argv[1])), kills=True).invoke({"steps": []}, CONFIG, durability="sync")
