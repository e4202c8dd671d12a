"""LangChain agents whose tool calls are transactions of a session, and whose files follow time travel.

`create_agent(model, structured_tools(toolset), middleware=[SessionMiddleware(toolset)], checkpointer=...)`. Needs the
extra `weakfs[langchain]`.
"""

from __future__ import annotations

try:
    # Versions before 1 do not have it.
    from langchain.agents.middleware import AgentMiddleware  # noqa: F401
    from langgraph.runtime import ExecutionInfo  # noqa: F401
except ImportError as error:
    if error.name is None or error.name.partition(".")[0] not in ("langchain", "langchain_core", "langgraph"):
        raise
    raise ModuleNotFoundError(
        "cannot use weakfs.integrations.langchain: the package langchain is not installed, or is older than 1.4; run: "
        "pip install 'weakfs[langchain]'"
    ) from error

from weakfs.integrations.langchain.middleware import SessionMiddleware
from weakfs.integrations.langchain.tools import structured_tools

__all__ = ["SessionMiddleware", "structured_tools"]
