"""Interruption points: where long-running work checks whether its call was cancelled or is past its deadline.

The checks belong to the context (`contextvars`) of a call, so that no function between a tool and the loop that reads
a large file has to pass them on. A loop over entries or pieces calls `check_interrupted` on each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar

Check = Callable[[], object]

# Innermost last. A tuple, so that a copied context never sees checks that are added elsewhere later.
_CHECKS: ContextVar[tuple[Check, ...]] = ContextVar("weakfs_interruption", default=())


def check_interrupted() -> None:
    """Raise if the running call was cancelled or is past its deadline; do nothing outside a call."""
    for check in _CHECKS.get():
        check()


def is_interruptible() -> bool:
    """Return whether the running code is in a call that can be interrupted."""
    return bool(_CHECKS.get())


class interruptible:  # noqa: N801  # a context manager; a class is a third of the cost of a generator
    """Have long-running work in this block call `check`, in this context and its copies.

    `check` raises to stop the work.
    """

    __slots__ = ("_check",)

    def __init__(self, check: Check) -> None:
        self._check = check

    def __enter__(self) -> None:
        _CHECKS.set((*_CHECKS.get(), self._check))

    def __exit__(self, *_: object) -> None:
        # A token of the context variable would not work: generators may leave in any order.
        check, checks = self._check, _CHECKS.get()
        _CHECKS.set(checks[:-1] if checks and checks[-1] is check else tuple(one for one in checks if one is not check))


class uninterrupted:  # noqa: N801  # like `interruptible`
    """Let work such as an undo run to its end: no check is called in this block."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _CHECKS.get()
        _CHECKS.set(())

    def __exit__(self, *_: object) -> None:
        _CHECKS.set(self._before)


def checked_between(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield pieces one by one, with a check before each."""
    for piece in pieces:
        check_interrupted()
        yield piece


def is_interruption(error: BaseException) -> bool:
    """Return whether an error means that a call has timed out; by type it is an `OSError`, like system errors."""
    return isinstance(error, TimeoutError) and error.errno is None
