"""Termination signals: they interrupt the command, which rolls back unfinished work, as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

# The signals that a job's time limit, a shutdown and a closed terminal send. Windows has no SIGHUP.
TERMINATION_SIGNALS = tuple(number for number in signal.Signals if number.name in ("SIGTERM", "SIGHUP"))


@contextmanager
def interruptible() -> Generator[None]:
    """Treat termination signals as interrupts, unless a handler is installed already."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    taken = [number for number in TERMINATION_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
