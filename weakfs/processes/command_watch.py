"""Watching a command: its three pipes are read concurrently until it ends or times out."""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import TypeVar

from weakfs.processes.output import HeadAndTail
from weakfs.processes.process import Job, Running
from weakfs.processes.status import Status

Self = TypeVar("Self", bound="Watch")

_CHUNK = 1 << 16

# How long output is still read when every process of the command is gone, in seconds. No output can be pending then,
# but a descriptor may have been passed to a process outside the command.
_DRAINING = 1.0


class StopEvent:
    """An event with which another thread can stop a command."""

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def __enter__(self) -> StopEvent:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def set(self) -> None:
        """Stop the command that is watched with this event, now or as soon as there is one."""
        os.eventfd_write(self.descriptor, 1)


class Watch:
    """A command from its start until all its processes have ended; leaving the block ensures that they have."""

    def __init__(self, job: Job, max_output: int) -> None:
        self.out, self.err = HeadAndTail(max_output), HeadAndTail(max_output)
        self.status = Status()
        self.returncode = 0
        self._job = job

    def __enter__(self: Self) -> Self:
        self._selector = selectors.DefaultSelector()
        self._reading: list[int] = []
        writing: list[int] = []
        try:
            for take in (self.out.add, self.err.add, self.status.add):
                ends = os.pipe()
                self._reading.append(ends[0])
                writing.append(ends[1])
                os.set_blocking(ends[0], False)
                self._selector.register(ends[0], selectors.EVENT_READ, take)
            self._running = Running(self._job, (writing[0], writing[1], writing[2]))
        except BaseException:
            self._close()
            raise
        finally:
            # Only the command's own copies keep the pipes open.
            for end in writing:
                os.close(end)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.returncode = self._running.end(self.status)
            if kind is None:
                self._read(_DRAINING, lambda: False)
        finally:
            self._close()

    def until_ended(self, timeout: float, stop: StopEvent | None = None) -> bool:
        """Wait for the command; return whether it had to be killed because it timed out or `stop` was set."""
        status = self.status
        stopped: list[bytes] = []
        if stop is not None:
            self._selector.register(stop.descriptor, selectors.EVENT_READ, stopped.append)
        self._read(timeout, lambda: status.is_final or bool(stopped))
        if stop is not None:
            self._selector.unregister(stop.descriptor)
        timed_out = not status.is_final
        if not timed_out or self._running.terminate(status):
            self._read(self._job.grace, lambda: status.closed)
        return timed_out

    def _read(self, seconds: float, enough: Callable[[], bool]) -> None:
        """Read for `seconds`, until `enough` returns true, or until all pipes are closed.

        What is already in the pipes is read even if the time is up: this process may not have run for a while.
        """
        until = monotonic() + seconds
        is_over = False
        while self._selector.get_map() and not enough() and not is_over:
            left = until - monotonic()
            is_over = left <= 0
            for key, _ in self._selector.select(max(left, 0)):
                with suppress(BlockingIOError):
                    data = os.read(key.fd, _CHUNK)
                    key.data(data)
                    if not data:
                        self._selector.unregister(key.fd)

    def _close(self) -> None:
        self._selector.close()
        for end in self._reading:
            os.close(end)
