"""The system calls of a piece of work: watched, cut short, or made to fail."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from attrs import define, field

CHANGING = ("open", "write", "ftruncate", "fchmod", "fsync", "rename", "replace", "link", "unlink", "remove", "close")
LOOKING = ("fstat", "stat", "lstat")


@define
class Call:
    """One system call: its name, its arguments, and its place in the sequence, from 0."""

    number: int
    name: str
    arguments: tuple[Any, ...]


Before = Callable[[Call], None]


def _nothing(call: Call) -> None:
    """Let the call happen."""


@define
class System:
    """The handling of system calls while it is installed."""

    before: Before = _nothing
    after: Before = _nothing
    # A write accepts at most this many bytes, as on a slow disk or a pipe.
    at_once: int = 1 << 30
    looking: bool = False
    calls: list[Call] = field(factory=list[Call])

    @contextmanager
    def in_force(self) -> Generator[System, None, None]:
        """Intercept the system calls of the program."""
        names = (*CHANGING, *LOOKING) if self.looking else CHANGING
        places: list[tuple[Any, str]] = [(os, name) for name in names]
        if self.looking:
            places.append((fcntl, "flock"))
        real = [(place, name, getattr(place, name)) for place, name in places]
        try:
            for place, name, function in real:
                setattr(place, name, self._watched(name, function))
            yield self
        finally:
            for place, name, function in real:
                setattr(place, name, function)

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            made = Call(len(self.calls), name, arguments)
            self.calls.append(made)
            self.before(made)
            if name == "write":
                arguments = (arguments[0], memoryview(arguments[1])[: self.at_once])
            result = function(*arguments, **options)
            self.after(made)
            return result

        return call


def raising(number: int, error: BaseException) -> Before:
    """Make one call fail, and no other."""

    def act(call: Call) -> None:
        if call.number == number:
            raise error

    return act
