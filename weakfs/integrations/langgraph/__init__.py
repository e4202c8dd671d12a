"""Checkpoints of LangGraph in a `Storage`: `graph.compile(checkpointer=StorageSaver(weakfs.storage.open(url)))`.

Needs the extra `weakfs[langgraph]`.
"""

from __future__ import annotations

try:
    # Versions before 4.3 do not have it.
    from langgraph.checkpoint.base import writes_sort_key  # noqa: F401
except ImportError as error:
    if error.name is None or error.name.partition(".")[0] not in ("langgraph", "langchain_core"):
        raise
    raise ModuleNotFoundError(
        "cannot use weakfs.integrations.langgraph: the package langgraph-checkpoint is not installed, or is older than "
        "4.3; run: pip install 'weakfs[langgraph]'"
    ) from error

from weakfs.integrations.langgraph.saver import StorageSaver

__all__ = ["StorageSaver"]
