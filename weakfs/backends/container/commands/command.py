"""Commands in a container that the caller waits for: a request to the supervisor, their output, and how they end.

Like a program on the host, a command works in a checkout, which undoes its changes if it fails.
"""

from __future__ import annotations

import os
import selectors
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from errno import EAGAIN, EDQUOT, EIO
from time import monotonic

from weakfs.backends.container.commands.command_files import CHUNK, CommandFiles, script_of
from weakfs.backends.container.commands.supervisor import Supervisor
from weakfs.errors import fault
from weakfs.processes import CommandLimits, CompletedCommand, StopEvent
from weakfs.processes.background import ProcessesRunning
from weakfs.processes.output import HeadAndTail
from weakfs.session.interruption import uninterrupted

# How often a command is checked against its limits, and the timeout for reading the output of a dead one, in seconds.
CHECKING, DRAINING = 0.02, 1.0

# The maximum number of pauses to wait for a command's shell to end after it has reported the exit code.
ENDING = 20


def run_command(
    supervisor: Supervisor,
    command: str,
    *,
    workdir: str,
    environment: Mapping[str, str],
    timeout: float,
    max_output: int,
    limits: CommandLimits,
    stop: StopEvent | None = None,
) -> CompletedCommand:
    """Run a shell command until it ends or is stopped. It leaves nothing running.

    Raises `ProcessesRunning` while programs that other filesystems of the container launched are running, and `OSError`
    (EDQUOT) if the container's files became too large.
    """
    text = script_of(["/bin/sh", "-c", command], workdir, environment, limits)
    with supervisor.commands:
        if supervisor.programs:
            raise fault(
                ProcessesRunning,
                EAGAIN,
                "cannot run a command in the container: processes that were started through another of its "
                "filesystems are running in it; stop them first",
            )
        with Command(supervisor, text, max_output) as running:
            running.until_ended(timeout, stop, limits.max_processes)
            running.end()
            running.drain()
            return running.completed(limits)


class Command:
    """One command in a container, which the caller waits for."""

    def __init__(self, supervisor: Supervisor, text: str, max_output: int) -> None:
        self._supervisor = supervisor
        self._out, self._err = HeadAndTail(max_output), HeadAndTail(max_output)
        self._timed_out = False
        self._too_many = False
        self._is_ended = False
        self._files = CommandFiles(supervisor.control, text, takes_input=False)
        self._selector = selectors.DefaultSelector()
        for descriptor, take in (
            (self._files.out, self._out.add),
            (self._files.err, self._err.add),
            (self._files.status, None),
        ):
            self._selector.register(descriptor, selectors.EVENT_READ, take)

    def __enter__(self) -> Command:
        try:
            self._supervisor.request(f"run {self._files.name}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.end()
        finally:
            self._selector.close()
            self._files.remove()

    def end(self) -> None:
        """Kill everything that the command started. It never begins if its request was not read."""
        if not self._is_ended:
            with uninterrupted():
                if self.exit_code is None:
                    self._files.remove_script()
                self._supervisor.kill_all(patience=0 if self.exit_code is None else ENDING)
                self._is_ended = True

    @property
    def exit_code(self) -> int | None:
        """The exit code; `None` until it was reported."""
        return self._files.exit_code

    def until_ended(self, timeout: float, stop: StopEvent | None, most: int | None) -> None:
        """Read until the command ends, takes too long, is stopped, or exceeds a limit."""
        if stop is not None:
            self._selector.register(stop.descriptor, selectors.EVENT_READ)
        until = monotonic() + timeout
        checked_at = monotonic()
        while self.exit_code is None and not self._files.has_ended:
            now = monotonic()
            if now >= until:
                # The command may have ended in time while this thread did not run.
                self._read(0)
                self._timed_out = self.exit_code is None and not self._files.has_ended
            if self._timed_out:
                return
            if now >= checked_at + CHECKING:
                checked_at = now
                self._check(most)
                if self._too_many:
                    return
            self._read(max(min(until, checked_at + CHECKING) - now, 0))

    def _check(self, most: int | None) -> None:
        why = self._supervisor.exceeded()
        if why is not None:
            raise fault(OSError, EDQUOT, f"cannot complete the command: {why}; its changes were undone")
        self._too_many = most is not None and len(self._supervisor.processes()) > most
        if not self._supervisor.is_alive:
            self._files.has_ended = True

    def _read(self, seconds: float) -> bool:
        """Read what there is; return whether there was anything."""
        found = self._selector.select(seconds)
        for key, _ in found:
            take: Callable[[bytes], None] | None = key.data
            if key.fd == self._files.status:
                self._files.read_status()
                if self._files.has_ended:
                    self._selector.unregister(key.fd)
            elif take is None:
                # Another thread is stopping it.
                self._timed_out = self.exit_code is None
                self._selector.unregister(key.fd)
            else:
                with suppress(BlockingIOError):
                    data = os.read(key.fd, CHUNK)
                    take(data)
                    if not data:
                        self._selector.unregister(key.fd)
        return bool(found)

    def drain(self) -> None:
        """Read the rest of the output, after all writers have ended."""
        until = monotonic() + DRAINING
        while self._read(0) and monotonic() < until:
            pass

    def completed(self, limits: CommandLimits) -> CompletedCommand:
        """Return how the command ended.

        Raises `OSError` if it was killed from outside, or the files became too large.
        """
        exit_code, too_many = self.exit_code, self._too_many
        if too_many:
            exit_code = 128 + signal.SIGKILL
            self._err.add(f"[the command was killed: it had more than {limits.max_processes} processes]\n".encode())
        if exit_code is None and not self._timed_out:
            raise fault(
                OSError, EIO, "the command was killed from outside; check whether the container is still running"
            )
        self._check(None)
        err = self._err.text()
        return CompletedCommand(
            exit_code=None if self._timed_out else exit_code,
            stdout=self._out.text(),
            stderr=err,
            timed_out=self._timed_out,
            sandboxed=True,
            unsandboxed_because=None,
            stdout_left_out=self._out.left_out,
            stderr_left_out=self._err.left_out,
            limits_hit=limits.likely_hit(exit_code, err, "max_processes" if too_many else None),
        )
