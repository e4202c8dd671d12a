"""A limit on how long a piece of work may take, far above what it needs: a hang becomes a failure."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


class Hung(BaseException):
    """Work that should have ended long ago; handlers of ordinary errors do not catch it."""


@contextmanager
def watched(seconds: int = 900) -> Generator[None, None, None]:
    """Raise `Hung` in work that takes longer. Only in the main thread."""

    def bark(number: int, frame: FrameType | None) -> None:
        raise Hung(f"still at it after {seconds} s")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
