"""Custom rules about whole calls: what a policy's `check` and `on_result` see, and how they are called."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import field, frozen

from weakfs.messages import clip
from weakfs.session import TransactionCancelled
from weakfs.tools.errors import PolicyDenied
from weakfs.tools.permissions.operations import Operation
from weakfs.tools.results import ToolResult

if TYPE_CHECKING:
    from weakfs.tools.context import ToolContext
    from weakfs.tools.permissions.policy import Policy

# How much of an error's message a refusal quotes.
QUOTED = 500


@frozen
class CallToJudge:
    """A call as a policy sees it: its checked parameters, `None` if it failed before they were made."""

    name: str
    params: object = field(repr=False)
    operation: Operation | None
    call_id: str
    caller: str | None
    _arguments: str | bytes = field(repr=False)

    def read_arguments(self) -> object:
        """Return the arguments as they were sent, as plain JSON values that the caller may change."""
        return json.loads(self._arguments)


# Return `None` to allow a call, or the reason of a refusal, which the model reads.
Check = Callable[[CallToJudge, "ToolContext"], str | None]
OnResult = Callable[[CallToJudge, ToolResult[object], "ToolContext"], str | None]


def check_call(policy: Policy, call: CallToJudge, context: ToolContext) -> None:
    """Raise `PolicyDenied` if the policy refuses a call before it is made, or fails to judge it."""
    _ask("check", lambda: policy.check(call, context), call)


def check_result(policy: Policy, call: CallToJudge, result: ToolResult[object], context: ToolContext) -> None:
    """Raise `PolicyDenied` if the policy refuses what a call did, or fails to judge it."""
    _ask("on_result", lambda: policy.on_result(call, result, context), call)


def _ask(hook: str, ask: Callable[[], object], call: CallToJudge) -> None:
    try:
        reason = ask()
    except TransactionCancelled:
        raise
    except Exception as error:
        cause = clip(f"{type(error).__name__}: {error}", QUOTED)
        raise _denied(
            call, f"the policy's {hook} failed ({cause}), and a call that cannot be judged is refused"
        ) from error
    if reason is None:
        return
    if not isinstance(reason, str):
        kind = type(reason).__name__
        raise _denied(call, f"the policy's {hook} returned a {kind} instead of None or a reason")
    raise _denied(call, reason or "the policy gave no reason")


def _denied(call: CallToJudge, reason: str) -> PolicyDenied:
    return PolicyDenied(f"cannot call {call.name}: {reason}", reason)
