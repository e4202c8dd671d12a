"""Threads that must end: one that hangs fails the test and shows where every thread is."""

from __future__ import annotations

import faulthandler
import sys
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Event, Thread

# Far longer than any of these tests takes; only a deadlock would last this long.
PATIENCE = 1000.0


@contextmanager
def frequent_switches() -> Generator[None, None, None]:
    """Let the interpreter switch threads as often as it can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def where_all_threads_stand() -> str:
    """Return the stack of every thread."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read()


def run_together(*works: Callable[[], object], meanwhile: Callable[[], object] | None = None) -> None:
    """Run each function in its own thread and wait for all; an exception in one of them is raised here.

    `meanwhile` runs in one more thread, again and again while the others work, and once more afterwards.
    """
    failures: list[BaseException] = []
    start, done = Event(), Event()

    def run(work: Callable[[], object]) -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            failures.append(error)

    def repeat(work: Callable[[], object]) -> None:
        while not failures:
            last = done.is_set()
            work()
            if last:
                return

    threads = [Thread(target=run, args=(work,), daemon=True) for work in works]
    watching = meanwhile
    companions = [] if watching is None else [Thread(target=run, args=(lambda: repeat(watching),), daemon=True)]
    with frequent_switches():
        for thread in (*threads, *companions):
            thread.start()
        start.set()
        try:
            for thread in threads:
                thread.join(PATIENCE)
        finally:
            done.set()
        for thread in companions:
            thread.join(PATIENCE)
    if any(thread.is_alive() for thread in (*threads, *companions)):
        raise AssertionError(f"threads hang:\n{where_all_threads_stand()}")
    if failures:
        raise failures[0]
