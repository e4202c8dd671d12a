"""The options of `Toolset.call` and `acall`, for their overloads."""

from __future__ import annotations

from typing import TypedDict

from weakfs.session import Cancellation


class AsyncCallOptions(TypedDict, total=False):
    """The options of `acall`."""

    call_id: str | None
    caller: str | None
    deadline: int | None
    timeout: float | None
    prompt: object
    rendered_prompt: object
    adapter: object
    budget_tracker: object


class CallOptions(AsyncCallOptions, total=False):
    """The options of `call`."""

    cancellation: Cancellation | None
