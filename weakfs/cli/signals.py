"""Signals: termination signals interrupt the command as Ctrl-C does, so that it rolls back unfinished work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

# Sent when a job exceeds its time limit, the system shuts down or the terminal is closed. Windows has no SIGHUP.
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


@contextmanager
def interrupts_deferred() -> Generator[None]:
    """Defer interrupts while modules are imported: an interrupt may crash an extension module that is loading."""
    # Windows has no signal masks.
    has_mask = hasattr(signal, "pthread_sigmask")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if has_mask else set()
    try:
        yield
    finally:
        if has_mask:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
