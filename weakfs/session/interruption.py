"""Where long work looks whether the call that it runs in is to stop: it was cancelled, or its deadline is over.

What is to be asked belongs to the context (`contextvars`) of a call, so that nothing between a tool and the loop that
reads a large file has to hand it on. A loop over entries or pieces calls `check_interrupted` in each round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], object]

# Innermost last. A tuple, so that a copied context never sees what another adds later.
_CHECKS: ContextVar[tuple[Check, ...]] = ContextVar("weakfs_interruption", default=())


def check_interrupted() -> None:
    """Raise what ends the running call if it was cancelled or is past its deadline; nothing happens outside of one."""
    for check in _CHECKS.get():
        check()


def is_interruptible() -> bool:
    """Return whether the running code is in a call that can be ended."""
    return bool(_CHECKS.get())


@contextmanager
def interruptible(check: Check) -> Iterator[None]:
    """Have `check` asked by all long work inside, in this context and in copies of it; it raises to stop the work."""
    _CHECKS.set((*_CHECKS.get(), check))
    try:
        yield
    finally:
        # Not by a token: generators may leave out of order.
        _CHECKS.set(tuple(known for known in _CHECKS.get() if known is not check))


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let work come to its end, such as undoing what a call has done: nothing is asked inside."""
    before = _CHECKS.get()
    _CHECKS.set(())
    try:
        yield
    finally:
        _CHECKS.set(before)


def checked_between(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Return pieces one by one, and look before each whether to stop."""
    for piece in pieces:
        check_interrupted()
        yield piece


def is_interruption(error: BaseException) -> bool:
    """Tell the end of a call's time, which is an `OSError` by its type, from what the system raises."""
    return isinstance(error, TimeoutError) and error.errno is None
