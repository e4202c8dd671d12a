"""A stub context for testing tool handlers without a runtime."""

from __future__ import annotations

from itertools import count

from weakfs import Session
from weakfs.filesystem import Filesystem, Limits
from weakfs.tools.context import ToolContext, build_tool_context


def make_stub_context(
    filesystem: Filesystem | None = None,
    *,
    session: Session | None = None,
    limits: Limits | None = None,
    deadline: int | None = None,
    prompt: object = None,
    rendered_prompt: object = None,
    adapter: object = None,
    budget_tracker: object = None,
) -> ToolContext:
    """Return a context that contains only what a test provides; the session's clock counts up from 1.

    Without `filesystem` the context has none, so that a test can check how a handler deals with that.
    """
    if session is None:
        session = Session(session_id="stub", clock=count(1).__next__)
    return build_tool_context(
        session=session,
        filesystem=filesystem,
        limits=limits,
        deadline=deadline,
        prompt=prompt,
        rendered_prompt=rendered_prompt,
        adapter=adapter,
        budget_tracker=budget_tracker,
    )
