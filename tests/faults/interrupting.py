"""Interrupts at every place where one can occur.

The interpreter checks for signals when it enters a Python function and when it returns from a C function.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from contextvars import copy_context
from inspect import CO_GENERATOR
from types import FrameType

from tests.sampling import ONE_OF, is_exhaustive
from tests.session.ledger import Added, Noted, Put, make_session
from weakfs import Session

# More than the number in any of these pieces of work.
MANY = 5000


class Interrupted(BaseException):
    """Raised by a signal handler, as `KeyboardInterrupt` is."""


def interrupted_at(place: int, work: Callable[[], object]) -> bool:
    """Do a piece of work with an interrupt at one place; return whether it has that many places."""
    passed = 0
    # contextlib runs between a `with` statement and the generator behind it, and our code cannot act there.
    own = {__file__, work.__code__.co_filename, contextlib.__file__}

    def look(frame: FrameType, event: str, arg: object) -> None:
        nonlocal passed
        # A generator that is resumed may have an exception thrown into it, so signals are not checked there.
        entered = event == "call" and not frame.f_code.co_flags & CO_GENERATOR
        # What a destructor raises is reported and discarded.
        is_ours = frame.f_code.co_filename not in own and frame.f_code.co_name != "__del__"
        if (entered or event == "c_return") and is_ours:
            passed += 1
            if passed == place:
                sys.setprofile(None)
                raise Interrupted

    sys.setprofile(look)
    try:
        work()
    except Interrupted:
        pass
    finally:
        sys.setprofile(None)
    return passed >= place


def every_place(attempt: Callable[[int], bool]) -> None:
    """Make an attempt with each place in turn, or a sample of them, until it reports that there are no more.

    Each attempt has its own context.
    """
    for place in range(1, MANY, 1 if is_exhaustive() else ONE_OF):
        if not copy_context().run(attempt, place):
            return
    raise AssertionError(f"there is no end of places: {MANY}")


def worked_session() -> Session:
    session = make_session()
    session.dispatch(Added(5))
    session.dispatch(Put("a", 0))
    session.snapshot("kept")
    session.dispatch(Noted("before"))
    return session
