"""Checkpoints of LangGraph in a `Storage`: `graph.compile(checkpointer=StorageSaver(weakfs.storage.open(url)))`.

Needs the extra `weakfs[langgraph]`.
"""

from __future__ import annotations

from weakfs.integrations.missing_packages import needed

with needed("langgraph", package="langgraph-checkpoint", modules=("langgraph", "langchain_core"), at_least="4.3"):
    # Versions before 4.3 do not have this name.
    from langgraph.checkpoint.base import writes_sort_key  # noqa: F401

from weakfs.integrations.langgraph.saver import StorageSaver

__all__ = ["StorageSaver"]
