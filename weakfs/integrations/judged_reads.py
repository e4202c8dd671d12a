"""Reads that are not calls of a tool, such as those of resources, under the same rules as calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from secrets import token_hex
from typing import Literal, TypeVar

from weakfs.class_decorators import frozen
from weakfs.filesystem import Filesystem
from weakfs.tools import CallToJudge, Policy, Receipt, ToolContext, Toolset, build_tool_context, require_filesystem
from weakfs.tools.results import answer_verbatim, summarize

T = TypeVar("T")


@frozen
class Request:
    """A read as custom rules see it: what the protocol calls it, its operation, and its path and moment."""

    name: str
    operation: Literal["read", "list", "search"]
    path: str
    at: str | None = None


def judged_read(
    toolset: Toolset,
    files: Filesystem,
    request: Request,
    read: Callable[[Filesystem], T],
    *,
    shown: Callable[[T], str],
    caller: str | None = None,
) -> T:
    """Read from `files` as the capability and the policy of a toolset allow, and return what `read` returns.

    A policy's custom rules judge the read like a call that succeeded: `check` before it, `on_result` with the text that
    `shown` makes of its result. It is neither recorded nor a transaction. Raises `PermissionError` if it is refused.
    """
    context = build_tool_context(
        session=toolset.session,
        filesystem=files,
        limits=toolset.limits,
        capability=toolset.capability,
        policy=toolset.policy,
        operation=request.operation,
        call_id=f"{request.name}-{token_hex(6)}",
        caller=caller,
    )
    policy = toolset.policy
    if not isinstance(policy, Policy) or not policy.has_custom_rules:
        return read(require_filesystem(context))
    call = _call(request, context)
    policy._judge_call(call, context)
    found = read(require_filesystem(context))
    receipt = Receipt(summary_text=summarize(f"{request.operation} {request.path}"))
    policy._judge_result(call, answer_verbatim(receipt, shown(found)), context)
    return found


def _call(request: Request, context: ToolContext) -> CallToJudge:
    arguments = {"path": request.path} if request.at is None else {"path": request.path, "at": request.at}
    call_id = context.call_id or ""
    return CallToJudge(request.name, request, request.operation, call_id, context.caller, json.dumps(arguments))
