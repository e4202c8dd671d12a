"""A trampoline: recursion of any depth, without using Python's own stack."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar, cast

T = TypeVar("T")

# A generator that yields its recursive calls and is sent their results.
Steps = Generator[Any, Any, T]


def run(steps: Steps[T]) -> T:
    """Run a recursive function written as a generator: `inner = yield function(part)` makes the recursive call."""
    stack: list[Steps[Any]] = [steps]
    given: Any = None
    while stack:
        try:
            called = stack[-1].send(given)
        except StopIteration as ended:
            stack.pop()
            given = ended.value
        else:
            stack.append(called)
            given = None
    return cast(T, given)
