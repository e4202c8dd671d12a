"""A policy: rules that restrict what a capability allows, by operation and path or by whole call, each with reasons."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from attrs import Factory, field, frozen
from attrs.validators import in_

from weakfs.messages import clip
from weakfs.search import GlobPattern, compile_glob
from weakfs.session import TransactionCancelled
from weakfs.tools.errors import PolicyDenied
from weakfs.tools.permissions.capability import Operation, checked
from weakfs.tools.results import ToolResult

if TYPE_CHECKING:
    from weakfs.tools.context import ToolContext

Effect = Literal["deny", "only", "blob"]

# How much of an error's message a refusal quotes.
QUOTED = 500


class Visibility(IntEnum):
    """How much of what an operation finds at a path may be seen, from the least to the most."""

    # The operation is refused.
    DENIED = 0
    # It is done, and no answer holds what it finds.
    WITHHELD = 1
    SHOWN = 2


def _patterns(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _rules(given: PolicyRule | Iterable[PolicyRule]) -> tuple[PolicyRule, ...]:
    rules = (given,) if isinstance(given, PolicyRule) else tuple(given)
    for rule in rules:
        if not isinstance(rule, PolicyRule):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"cannot use {rule!r} as a rule of a policy: it is a {type(rule).__name__}; give "
                f"PolicyRule(effect=..., operations=..., paths=..., reason=...)"
            )
    return rules


def _compiled(rule: PolicyRule) -> tuple[GlobPattern, ...]:
    return tuple(compile_glob(pattern, hidden=True) for pattern in rule.paths)


# A rule remembers so many paths.
MOST_REMEMBERED = 4096


@frozen(kw_only=True)
class PolicyRule:
    """One rule about some operations.

    `effect` is "deny" (never at these paths), "only" (nowhere else), or "blob" (what is read there goes into no answer,
    which refers to it as a blob). `paths` are glob patterns, hidden files included; one that matches a directory covers
    what is in it: `/src` is all of it, `*.key` every such name at any depth. The model reads `reason`.
    """

    effect: Effect = field(validator=in_(("deny", "only", "blob")))
    operations: frozenset[Operation] = field(converter=checked)
    paths: tuple[str, ...] = field(converter=_patterns)
    reason: str
    _globs: tuple[GlobPattern, ...] = field(
        init=False, repr=False, eq=False, default=Factory(_compiled, takes_self=True)
    )

    # What was asked before: every call asks about the same path a dozen times, at 5 µs for two patterns.
    _covered: dict[str, bool] = field(init=False, repr=False, eq=False, factory=dict[str, bool])

    def covers(self, path: str) -> bool:
        """Return whether a canonical path is one of `paths` or below one."""
        known = self._covered.get(path)
        if known is None:
            if len(self._covered) >= MOST_REMEMBERED:
                self._covered.clear()
            known = self._covered[path] = self._is_covered(path)
        return known

    def _is_covered(self, path: str) -> bool:
        while True:
            if any(glob.matches_path(path) or glob.matches_path(path, True) for glob in self._globs):
                return True
            if path == "/":
                return "/" in self.paths
            path = path.rpartition("/")[0] or "/"


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


@frozen
class Policy:
    """Rules that only restrict, so that their order does not matter.

    ```python
    Policy([
        PolicyRule(effect="only", operations=["write", "edit", "patch"], paths="/src", reason="sources only"),
        PolicyRule(effect="deny", operations=CONTENTS, paths=["/secrets", "*.key"], reason="credentials"),
    ])
    ```

    Custom rules see whole calls: `check` is called before a call is made, `on_result` after it. Each returns `None`, or
    the reason of a refusal: then the call fails and is undone. Neither can allow what a rule or a capability forbids.
    Pass them here, or override the methods in a subclass. A rule that raises an exception refuses the call. Keep what
    rules must remember between calls, such as a count, in a slice of `context.session`: it is saved and rolled back
    with the session. `on_result` also sees calls that failed, after they were undone.
    """

    rules: tuple[PolicyRule, ...] = field(default=(), converter=_rules)
    _check: Check | None = field(default=None, alias="check", kw_only=True, repr=False)
    _on_result: OnResult | None = field(default=None, alias="on_result", kw_only=True, repr=False)

    @property
    def has_custom_rules(self) -> bool:
        """Whether a function judges whole calls."""
        return self._check is not None or self._on_result is not None

    def check(self, call: CallToJudge, context: ToolContext) -> str | None:
        """Return why a call may not be made, or `None`. Called in the call's transaction, before its handler."""
        return None if self._check is None else self._check(call, context)

    def on_result(self, call: CallToJudge, result: ToolResult[object], context: ToolContext) -> str | None:
        """Return why what a call did may not stay, or `None`. Called in the call's transaction, after its handler."""
        return None if self._on_result is None else self._on_result(call, result, context)

    def against(self, operation: Operation, path: str, *, passing: bool = False) -> PolicyRule | None:
        """Return the rule that forbids an operation at a path, if there is one.

        `passing` is for a directory that a search passes through, which "only" does not stop.
        """
        for rule in self.rules:
            if operation in rule.operations and (
                (rule.effect == "deny" and rule.covers(path))
                or (rule.effect == "only" and not passing and not rule.covers(path))
            ):
                return rule
        return None

    def has_rule_for(self, *operations: Operation, withheld: bool = False) -> bool:
        """Return whether a rule forbids one of these operations, or with `withheld` keeps it out of answers."""
        return any(
            (withheld or rule.effect != "blob") and not rule.operations.isdisjoint(operations) for rule in self.rules
        )

    def visibility(self, operation: Operation, path: str) -> Visibility:
        """Return how much of what an operation finds at a path may be seen."""
        if self.against(operation, path) is not None:
            return Visibility.DENIED
        return Visibility.SHOWN if self.withholding(operation, path) is None else Visibility.WITHHELD

    def loosened(self, operations: Iterable[Operation], source: str, destination: str) -> PolicyRule | None:
        """Return a rule about one of these operations that holds at `source` and not at `destination`."""
        for operation in operations:
            if self.visibility(operation, destination) > self.visibility(operation, source):
                return self.against(operation, source) or self.withholding(operation, source)
        return None

    def withholding(self, operation: Operation, path: str) -> PolicyRule | None:
        """Return the rule that keeps what an operation finds at a path out of answers, if there is one."""
        for rule in self.rules:
            if rule.effect == "blob" and operation in rule.operations and rule.covers(path):
                return rule
        return None


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
