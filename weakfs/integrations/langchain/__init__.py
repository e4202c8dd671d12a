"""LangChain agents whose tool calls are transactions of a session, and whose files follow time travel.

`create_agent(model, structured_tools(toolset), middleware=[SessionMiddleware(toolset)], checkpointer=...)`. Needs the
extra `weakfs[langchain]`.
"""

from __future__ import annotations

from weakfs.integrations.missing_packages import needed

with needed("langchain", modules=("langchain", "langchain_core", "langgraph"), at_least="1.4"):
    # Versions before 1 do not have this name.
    from langchain.agents.middleware import AgentMiddleware  # noqa: F401
    from langgraph.runtime import ExecutionInfo  # noqa: F401

from weakfs.integrations.langchain.middleware import SessionMiddleware
from weakfs.integrations.langchain.tools import structured_tools

__all__ = ["SessionMiddleware", "structured_tools"]
