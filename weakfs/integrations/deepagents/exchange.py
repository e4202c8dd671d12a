"""The exchange between a backend and the handlers of its calls, apart from what is recorded of a call."""

from __future__ import annotations

from typing import Any, Literal, cast

from attrs import field

from weakfs.class_decorators import define
from weakfs.tools import Receipt, ToolContext, ToolResult
from weakfs.tools.results import answer, summarize

# Whether to follow deepagents' protocol or its sandboxes where they disagree.
Dialect = Literal["protocol", "sandbox"]


@define
class Exchange:
    """The handler's answer for deepagents, and contents that are too large for recorded arguments."""

    dialect: Dialect
    contents: tuple[bytes, ...] = ()
    answer: Any = field(default=None)


def exchange_of(context: ToolContext) -> Exchange:
    """Return the exchange of the call."""
    return cast(Exchange, context.adapter)


def answered(context: ToolContext, given: object, summary: str) -> ToolResult[Receipt]:
    """Store a result for the backend, and return the short answer to record."""
    exchange_of(context).answer = given
    return answer(Receipt(summary_text=summarize(summary)))
