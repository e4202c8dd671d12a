"""Steps of a call: written once as a generator, and performed synchronously or asynchronously."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")


# Something that a call waits for: a function that blocks, and one that returns an awaitable.
Step = tuple[Callable[[], object], Callable[[], Awaitable[object]]]
# For each step that it yields, the generator receives the result, or the error is thrown into it.
Steps = Generator[Step, Any, T]


def run(steps: Steps[T]) -> T:
    """Perform the steps one after another, and return the generator's result."""
    try:
        step = next(steps)
        while True:
            try:
                given = step[0]()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(given)
    except StopIteration as end:
        result: T = end.value
        return result


async def arun(steps: Steps[T]) -> T:
    """Perform the steps as `run` does, and await each of them."""
    try:
        step = next(steps)
        while True:
            try:
                given = await step[1]()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(given)
    except StopIteration as end:
        result: T = end.value
        return result
