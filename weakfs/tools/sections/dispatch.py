"""From the name of a tool to its answer: the section that provides it, that section's filesystem, and the call."""

from __future__ import annotations

from collections.abc import Mapping

from weakfs.session import Session
from weakfs.tools.results import ToolResult
from weakfs.tools.sections.prompt import Prompt


def dispatch_tool_call(
    prompt: Prompt,
    name: str,
    arguments: Mapping[str, object] | str | bytes,
    *,
    session: Session,
    call_id: str | None = None,
    caller: str | None = None,
    adapter: object = None,
    deadline: int | None = None,
    timeout: float | None = None,
    budget_tracker: object = None,
) -> ToolResult[object]:
    """Make a call of one of a prompt's tools, on the filesystem of the section that provides it.

    A section without one uses the prompt's; without any, handlers that need one fail. The handler finds the prompt, the
    prompt as it is rendered, `adapter`, `deadline` and `budget_tracker` in its context. Otherwise it is like
    `Toolset.call`: a failure is an answer, changes nothing, and is recorded.
    """
    return prompt.toolset(name, session).call(
        name,
        arguments,
        call_id=call_id,
        caller=caller,
        deadline=deadline,
        timeout=timeout,
        prompt=prompt,
        rendered_prompt=prompt.render(),
        adapter=adapter,
        budget_tracker=budget_tracker,
    )


async def adispatch_tool_call(
    prompt: Prompt,
    name: str,
    arguments: Mapping[str, object] | str | bytes,
    *,
    session: Session,
    call_id: str | None = None,
    caller: str | None = None,
    adapter: object = None,
    deadline: int | None = None,
    timeout: float | None = None,
    budget_tracker: object = None,
) -> ToolResult[object]:
    """Make a call concurrently with others, as `Toolset.acall` does; see `dispatch_tool_call`."""
    return await prompt.toolset(name, session).acall(
        name,
        arguments,
        call_id=call_id,
        caller=caller,
        deadline=deadline,
        timeout=timeout,
        prompt=prompt,
        rendered_prompt=prompt.render(),
        adapter=adapter,
        budget_tracker=budget_tracker,
    )
