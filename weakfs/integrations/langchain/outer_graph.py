"""The outermost graph around an agent: the checkpoint from which it runs, and the checkpoints before that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import sleep
from typing import TYPE_CHECKING, Any, cast

from langgraph.config import get_config
from langgraph.runtime import ExecutionInfo

from weakfs.class_decorators import frozen

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

# The keys of LangGraph's configuration for the saver of a graph, and for when checkpoints are stored.
_SAVER = "__pregel_checkpointer"
_DURABILITY = "__pregel_durability"
# The namespace of the outermost graph.
_ROOT = ""
# How long to wait for a checkpoint that is being stored, in seconds.
LONGEST_WAIT = 10.0


@frozen
class Ancestor:
    """A checkpoint, as an ancestor of another one."""

    checkpoint: str
    # Whether the checkpoint was stored at the end of a step, rather than when a run began or a step was started again.
    is_next: bool
    is_first: bool


def is_in_graph(info: ExecutionInfo) -> bool:
    """Return whether an agent is part of a larger graph."""
    return "|" in info.checkpoint_ns


def root_checkpoint() -> str | None:
    """Return the checkpoint from which the outermost graph runs, if it has one."""
    found = _configurable().get("checkpoint_map", {}).get(_ROOT)
    return found if isinstance(found, str) else None


def lineage() -> list[Ancestor]:
    """Return that checkpoint and its ancestors, newest first, as far as the saver has them. O(checkpoints)."""
    found: list[Ancestor] = []
    saver, config, pauses = _saver(), _config(root_checkpoint()), _pauses()
    while saver is not None and config is not None:
        one = saver.get_tuple(config)
        if one is None and not found and (pause := next(pauses, None)) is not None:
            sleep(pause)
            continue
        config = _add(found, one)
    return found


async def alineage() -> list[Ancestor]:
    """Return the same as `lineage`, from a saver that has only async methods."""
    found: list[Ancestor] = []
    saver, config, pauses = _saver(), _config(root_checkpoint()), _pauses()
    while saver is not None and config is not None:
        one = await saver.aget_tuple(config)
        if one is None and not found and (pause := next(pauses, None)) is not None:
            await asyncio.sleep(pause)
            continue
        config = _add(found, one)
    return found


def _pauses() -> Iterator[float]:
    """Yield how long to wait for a checkpoint: by default LangGraph stores it while the next step is running."""
    pause, waited = 0.001, 0.0
    while _configurable().get(_DURABILITY) != "exit" and waited < LONGEST_WAIT:
        yield pause
        waited += pause
        pause = min(2 * pause, 0.1)


def _add(found: list[Ancestor], one: CheckpointTuple | None) -> RunnableConfig | None:
    """Add a checkpoint; return the configuration of the one before it."""
    if one is None:
        return None
    before = one.parent_config
    is_next = one.metadata.get("source") == "loop"
    found.append(Ancestor(one.checkpoint["id"], is_next, is_first=before is None))
    return before


def _config(checkpoint: str | None) -> RunnableConfig | None:
    if checkpoint is None:
        return None
    thread = _configurable()["thread_id"]
    return {"configurable": {"thread_id": thread, "checkpoint_ns": _ROOT, "checkpoint_id": checkpoint}}


def _saver() -> BaseCheckpointSaver[Any] | None:
    return cast("BaseCheckpointSaver[Any] | None", _configurable().get(_SAVER))


def _configurable() -> dict[str, Any]:
    return get_config().get("configurable", {})
