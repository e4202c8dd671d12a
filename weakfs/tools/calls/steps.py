"""Steps of a call: written once as a generator, and taken by blocking or by awaiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")


# Something that a call waits for: a function that returns it, and one whose result is awaited.
Step = tuple[Callable[[], object], Callable[[], Awaitable[object]]]
# Each step that is yielded gets its result sent back, or its error thrown.
Steps = Generator[Step, Any, T]


def run(steps: Steps[T]) -> T:
    """Take the steps one after another, and return their result."""
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
    """Take the steps as `run` does, and await each of them."""
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
