"""Tools made from functions, and toolsets with them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from attrs import frozen

from weakfs import DEFAULT_TOOLS, Session, Tool, ToolContext, ToolResult, Toolset
from weakfs.session import Session as AnySession
from weakfs.tools import ToolCall, ToolCalls, require_filesystem


@frozen
class Probe:
    path: str = "/probe"


def probe(handler: Callable[[ToolContext], ToolResult[object]], *, read_only: bool = False) -> Tool:
    def run(params: Probe, *, context: ToolContext) -> ToolResult[object]:
        return handler(context)

    return Tool("probe", "For tests.", Probe, run, read_only=read_only)


def toolset_with(*tools: Tool, **more: Any) -> Toolset:
    session = Session(session_id="s", clock=count(1).__next__)
    return Toolset(session, tools=(*DEFAULT_TOOLS, *tools), **more)


def writing(context: ToolContext, path: str = "/probe") -> None:
    require_filesystem(context).write(path, "written")


def only_call(session: AnySession) -> ToolCall:
    (call,) = session[ToolCalls].all()
    return call
