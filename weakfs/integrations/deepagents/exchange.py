"""What a backend and the handlers of its calls hand to one another, beside what is recorded of a call."""

from __future__ import annotations

from typing import Any, Literal, cast

from attrs import field

from weakfs.class_decorators import define
from weakfs.tools import Receipt, ToolContext, ToolResult
from weakfs.tools.results import answer, summarize

# Where the texts of deepagents disagree with one another.
Dialect = Literal["protocol", "sandbox"]


@define
class Exchange:
    """The answer of a call for deepagents, which the handler puts in, and contents that are too large for arguments."""

    dialect: Dialect
    contents: tuple[bytes, ...] = ()
    answer: Any = field(default=None)


def exchange_of(context: ToolContext) -> Exchange:
    """Return what the backend that makes the call handed over."""
    return cast(Exchange, context.adapter)


def answered(context: ToolContext, given: object, summary: str) -> ToolResult[Receipt]:
    """Hand a result over, and return the short answer to record."""
    exchange_of(context).answer = given
    return answer(Receipt(summary_text=summarize(summary)))
