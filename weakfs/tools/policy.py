"""The policy of a toolset: rules about operations and paths, and custom rules about whole calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from attrs import Attribute, field

from weakfs.class_decorators import frozen
from weakfs.messages import a_type, clip
from weakfs.session import TransactionCancelled
from weakfs.tools.context import ToolContext
from weakfs.tools.errors import PolicyDenied
from weakfs.tools.permissions import Operation, PathPolicy
from weakfs.tools.results import ToolResult

# The number of characters of an error's message that a refusal quotes.
QUOTED = 500


@frozen
class CallToJudge:
    """A call as a policy sees it; `params` are the checked parameters, `None` if it failed before the check."""

    name: str
    params: object = field(repr=False)
    operation: Operation | None
    call_id: str
    caller: str | None
    _arguments: str | bytes = field(repr=False)

    def read_arguments(self) -> object:
        """Return the arguments as they were sent, as plain JSON values that the caller may change."""
        return json.loads(self._arguments)


# A custom rule returns `None` to allow a call, or the reason for refusing it, which the model reads.
Check = Callable[[CallToJudge, ToolContext], str | None]
OnResult = Callable[[CallToJudge, ToolResult[object], ToolContext], str | None]


def _function(instance: object, attribute: Attribute[Any], value: object) -> None:
    if value is not None and not callable(value):
        raise TypeError(
            f"{attribute.alias} is {a_type(value)}; pass a function that returns None or the reason for a refusal"
        )


@frozen
class Policy(PathPolicy):
    """Rules that only restrict, so that their order does not matter.

    ```python
    Policy([
        PolicyRule(effect="only", operations=["write", "edit", "patch"], paths="/src", reason="sources only"),
        PolicyRule(effect="deny", operations=CONTENTS, paths=["/secrets", "*.key"], reason="credentials"),
    ])
    ```

    Custom rules see whole calls: `check` is called before a call is made, `on_result` after it. Each returns `None`, or
    the reason for a refusal: then the call fails and is undone. Neither can allow what a rule or a capability forbids.
    Pass them here, or override the methods in a subclass. If a custom rule raises an exception, the call is refused.
    Keep what rules must remember between calls, such as a count, in a slice of `context.session`: it is saved and
    rolled back with the session. `on_result` also sees calls that failed, after they were undone.
    """

    _check: Check | None = field(default=None, alias="check", kw_only=True, repr=False, validator=_function)
    _on_result: OnResult | None = field(default=None, alias="on_result", kw_only=True, repr=False, validator=_function)

    @property
    def has_custom_rules(self) -> bool:
        """Whether a function judges whole calls, or a subclass may."""
        return type(self) is not Policy or self._check is not None or self._on_result is not None

    def check(self, call: CallToJudge, context: ToolContext) -> str | None:
        """Return why a call may not be made, or `None`. This is called in its transaction, before its handler."""
        return None if self._check is None else self._check(call, context)

    def on_result(self, call: CallToJudge, result: ToolResult[object], context: ToolContext) -> str | None:
        """Return why a call must be undone, or `None`. This is called in its transaction, after its handler."""
        return None if self._on_result is None else self._on_result(call, result, context)

    def _judge_call(self, call: CallToJudge, context: ToolContext) -> None:
        """Raise `PolicyDenied` if a call is refused before it is made, or cannot be judged."""
        _ask("check", lambda: self.check(call, context), call)

    def _judge_result(self, call: CallToJudge, result: ToolResult[object], context: ToolContext) -> None:
        """Raise `PolicyDenied` if the result of a call is refused, or cannot be judged."""
        _ask("on_result", lambda: self.on_result(call, result, context), call)


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
