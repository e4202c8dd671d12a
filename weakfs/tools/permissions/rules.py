"""The rules of a policy: which operations are restricted at which paths, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Literal, get_args

from attrs import Factory, field

from weakfs.class_decorators import frozen
from weakfs.messages import a_type
from weakfs.search import GlobPattern
from weakfs.tools.permissions.operations import Operation, checked

Effect = Literal["deny", "only", "blob"]


class Visibility(IntEnum):
    """How much may be seen of what an operation finds at a path, from least to most."""

    # The operation is refused.
    DENIED = 0
    # The operation is performed, but no answer shows what it finds.
    WITHHELD = 1
    SHOWN = 2


def _patterns(given: str | Iterable[str]) -> tuple[str, ...]:
    patterns = (given,) if isinstance(given, str) else tuple(given)
    for pattern in patterns:
        if not isinstance(pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"paths contains {pattern!r:.60}; give glob patterns such as '/src' or '*.key'")
    return patterns


def _known_effect(instance: object, attribute: object, value: Effect) -> None:
    if value not in get_args(Effect):
        raise ValueError(f"effect is {value!r:.60}; give 'deny', 'only' or 'blob', since rules only restrict")


def _text(instance: object, attribute: object, value: str) -> None:
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"reason is {value!r:.60}; give the text that the model reads")


def _rules(given: PolicyRule | Iterable[PolicyRule]) -> tuple[PolicyRule, ...]:
    rules = (given,) if isinstance(given, PolicyRule) else tuple(given)
    for rule in rules:
        if not isinstance(rule, PolicyRule):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"cannot use {rule!r} as a rule of a policy: it is {a_type(rule)}; give "
                f"PolicyRule(effect=..., operations=..., paths=..., reason=...)"
            )
    return rules


def _compiled(rule: PolicyRule) -> GlobPattern:
    return GlobPattern(*rule.paths, hidden=True)


@frozen(kw_only=True)
class PolicyRule:
    """One rule about some operations.

    `effect` is "deny" (never at these paths), "only" (nowhere else), or "blob" (answers refer to the contents as a blob
    instead of showing them). `paths` are glob patterns, which also match hidden files. A pattern that matches a
    directory covers everything in it: `/src` covers the whole directory, `*.key` every such name at any depth. The
    model reads `reason`.
    """

    effect: Effect = field(validator=_known_effect)
    operations: frozenset[Operation] = field(converter=checked)
    paths: tuple[str, ...] = field(converter=_patterns)
    reason: str = field(validator=_text)
    _glob: GlobPattern = field(init=False, repr=False, eq=False, default=Factory(_compiled, takes_self=True))

    def covers(self, path: str) -> bool:
        """Return whether a canonical path is one of `paths` or below one."""
        return self._glob.covers(path)


def _withheld(policy: PathPolicy) -> frozenset[Operation]:
    """Return the operations whose results a rule keeps out of answers."""
    return frozenset(one for rule in policy.rules if rule.effect == "blob" for one in rule.operations)


@frozen
class PathPolicy:
    """The rules of a policy that only restrict, so that their order does not matter; see `weakfs.tools.Policy`."""

    rules: tuple[PolicyRule, ...] = field(default=(), converter=_rules)
    _withheld: frozenset[Operation] = field(
        init=False, repr=False, eq=False, default=Factory(_withheld, takes_self=True)
    )

    @property
    def has_custom_rules(self) -> bool:
        """Whether custom rules judge whole calls, which only a `weakfs.tools.Policy` can have."""
        return False

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
        """Return whether a rule forbids one of these operations or, with `withheld`, withholds its results."""
        return any(
            (withheld or rule.effect != "blob") and not rule.operations.isdisjoint(operations) for rule in self.rules
        )

    def withholds(self, operations: Iterable[Operation]) -> bool:
        """Return whether a rule keeps results of one of these operations out of answers, at any path."""
        return not self._withheld.isdisjoint(operations)

    def visibility(self, operation: Operation, path: str) -> Visibility:
        """Return how much may be seen of what an operation finds at a path."""
        if self.against(operation, path) is not None:
            return Visibility.DENIED
        return Visibility.SHOWN if self.withholding(operation, path) is None else Visibility.WITHHELD

    def loosened(self, operations: Iterable[Operation], source: str, destination: str) -> PolicyRule | None:
        """Return a rule about one of these operations that applies at `source` but not at `destination`."""
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
