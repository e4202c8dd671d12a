"""Recursion that is as deep as a tree is, without Python's own stack."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar, cast

T = TypeVar("T")

# A function that yields its recursive calls and is sent what they give.
Steps = Generator[Any, Any, T]


def run(steps: Steps[T]) -> T:
    """Run a function that is written as a generator: `inner = yield function(part)` calls itself."""
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
