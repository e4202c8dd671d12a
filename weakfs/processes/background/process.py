"""One background process: a thread reads its output, writes its input, and terminates it when its time is up."""

from __future__ import annotations

import errno
import logging
import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread
from time import monotonic
from typing import Literal

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.processes.background.errors import InputClosed, NotRunning
from weakfs.processes.background.launcher import Program, ProgramEnd
from weakfs.processes.background.output_ring import Excerpt, OutputRing

logger = logging.getLogger("weakfs.processes")

_CHUNK = 1 << 16

# The pause after each full read, in seconds: a process that prints endlessly is read at 64 MB per second at most.
_FLOOD_PAUSE = 0.001

# How long output is still read after the process and its children have ended, in seconds.
_DRAINING = 1.0

# How many bytes of input are kept for a process that does not read it.
MAX_PENDING_INPUT = 1 << 20

State = Literal["held", "running", "ended"]


def _positive(instance: object, attribute: object, value: float | None) -> None:
    if value is not None and (isinstance(value, bool) or not value > 0):
        raise ValueError(f"{getattr(attribute, 'name', 'a limit')} is {value!r}; give a number above 0, or None")


@frozen(kw_only=True)
class ProcessLimits:
    """Limits of background processes; `None` means no limit. Times are in seconds, sizes in bytes.

    At most `max_running` processes run at once. A process is terminated after `max_lifetime`, and after `max_idle`
    without output, input or a query: it gets SIGTERM, and SIGKILL after `grace`. The newest `max_kept_output` bytes of
    its output are kept.
    """

    max_running: int | None = field(default=16, validator=_positive)
    max_lifetime: float | None = field(default=4 * 3600.0, validator=_positive)
    max_idle: float | None = field(default=None, validator=_positive)
    max_kept_output: int = field(default=1 << 20, validator=_positive)
    grace: float = field(default=1.0, validator=_positive)


@frozen
class ProcessEnding:
    """How a process ended. `reason` says why, unless the program ended by itself."""

    exit_code: int | None
    reason: str | None


class BackgroundProcess:
    """A program that runs until it ends, is terminated, or reaches a limit. Thread-safe."""

    def __init__(self, process_id: str, program: Program, limits: ProcessLimits) -> None:
        self.process_id = process_id
        self.unsandboxed_because = program.unsandboxed_because
        self._program = program
        self._limits = limits
        self._changed = Condition()
        self._ring = OutputRing(limits.max_kept_output)
        self._pending = bytearray()
        self._takes_input = True
        self._closes_input = False
        self._stdin_is_open = True
        self._begun_at: float | None = None
        self._active_at = monotonic()
        self._reason: str | None = None
        # The time at which SIGKILL follows SIGTERM, and whether it was sent.
        self._kill_at: float | None = None
        self._is_killed = False
        self._ending: ProcessEnding | None = None
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            Thread(target=self._run, name=f"weakfs process {process_id}", daemon=True).start()
        except BaseException:
            program.stop()
            self._finish()
            raise

    def __repr__(self) -> str:
        return f"<BackgroundProcess {self.process_id} {self.state}>"

    @property
    def state(self) -> State:
        """Whether the process is waiting for the transaction that started it, is running, or has ended."""
        if self._ending is not None:
            return "ended"
        return "held" if self._begun_at is None else "running"

    @property
    def ending(self) -> ProcessEnding | None:
        """How the process ended; `None` while it runs."""
        return self._ending

    @property
    def output_size(self) -> int:
        """The number of bytes that the process has printed."""
        return self._ring.total

    def begin(self) -> None:
        """Let the program run."""
        with self._changed:
            if self._begun_at is None and self._reason is None:
                self._begun_at = self._active_at = monotonic()
                self._program.begin()
        self._wake_up()

    def output(self, since: int | None, most: int) -> Excerpt:
        """Return a part of what the process has printed; see `OutputRing.excerpt`."""
        with self._changed:
            self._active_at = monotonic()
            return self._ring.excerpt(since, most, is_complete=self._ending is not None)

    def write(self, data: bytes, *, close: bool = False) -> None:
        """Write all of the input or, on an error, none of it; with `close`, end the input afterwards.

        The program may read it later. Raises `NotRunning` or `InputClosed`.
        """
        with self._changed:
            self._check_running("take input")
            if not self._takes_input or self._closes_input:
                raise fault(
                    InputClosed,
                    errno.EPIPE,
                    f"cannot write to process {self.process_id}: its input is closed; start another process",
                )
            if len(self._pending) + len(data) > MAX_PENDING_INPUT:
                raise fault(
                    InputClosed,
                    errno.EAGAIN,
                    f"cannot write {len(data)} bytes to process {self.process_id}: it has not read "
                    f"{len(self._pending)} bytes that were written before; write less, or wait",
                )
            self._pending += data
            self._closes_input = close
            self._active_at = monotonic()
        self._wake_up()

    def signal(self, number: int) -> None:
        """Send a signal to the program and the processes in its group. Raises `NotRunning`."""
        with self._changed:
            self._check_running("receive a signal")
            self._active_at = monotonic()
            self._program.signal(number)

    def end(self, reason: str) -> None:
        """Terminate the process with SIGTERM, then SIGKILL after the grace period. Return immediately; see `wait`."""
        with self._changed:
            if self._reason is None:
                self._reason = reason
        self._wake_up()

    def wait(self, timeout: float | None, stop: Callable[[], bool] = lambda: False) -> bool:
        """Wait for the process to end, for `timeout` seconds or until `stop` is true; return whether it has ended.

        `stop` is called again after each `notify`.
        """
        with self._changed:
            self._active_at = monotonic()
            self._changed.wait_for(lambda: self._ending is not None or stop(), timeout)
            self._active_at = monotonic()
            return self._ending is not None

    def wait_for_output(self, beyond: int, timeout: float, stop: Callable[[], bool]) -> None:
        """Wait until the process has printed more than `beyond` bytes, or has ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._ring.total > beyond or self._ending is not None or stop(), timeout)
            self._active_at = monotonic()

    def notify(self) -> None:
        """Wake all waiting threads, so that they check again."""
        with self._changed:
            self._changed.notify_all()

    def _check_running(self, doing: str) -> None:
        if self.state != "running":
            why = "it has ended" if self._ending is not None else "it starts when its transaction ends"
            raise fault(NotRunning, errno.ESRCH, f"process {self.process_id} cannot {doing}: {why}; see process_list")

    def _wake_up(self) -> None:
        with self._changed:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    # Methods that run in the thread

    def _run(self) -> None:
        program = self._program
        try:
            with selectors.DefaultSelector() as selector:
                for descriptor in (program.output, program.status, self._wake):
                    selector.register(descriptor, selectors.EVENT_READ)
                while not self._step(selector):
                    self._enforce_limits()
                self._drain(selector)
        except BaseException:
            logger.exception("terminating process %s, because it cannot be watched any more", self.process_id)
            program.stop()
        finally:
            self._finish()

    def _step(self, selector: selectors.BaseSelector) -> bool:
        """Wait for an event and handle it; return whether the program and all its processes have ended."""
        program = self._program
        for key, _ in selector.select(self._patience()):
            if key.fd == program.output:
                self._read_output(selector)
            elif key.fd == program.stdin:
                self._write_input()
            elif key.fd == self._wake:
                os.eventfd_read(self._wake)
            elif program.read_status():
                return True
        self._watch_input(selector)
        return False

    def _read_output(self, selector: selectors.BaseSelector) -> None:
        with suppress(BlockingIOError):
            data = os.read(self._program.output, _CHUNK)
            if not data:
                selector.unregister(self._program.output)
                return
            with self._changed:
                self._ring.add(data)
                self._active_at = monotonic()
                self._changed.notify_all()
            if len(data) == _CHUNK:
                time.sleep(_FLOOD_PAUSE)

    def _write_input(self) -> None:
        with self._changed:
            try:
                with suppress(BlockingIOError):
                    del self._pending[: os.write(self._program.stdin, self._pending)]
            except BrokenPipeError:
                self._takes_input = False
                self._pending.clear()

    def _watch_input(self, selector: selectors.BaseSelector) -> None:
        """Watch the input pipe while there is input to write, and close it after the last of the input."""
        stdin = self._program.stdin
        with self._changed:
            if not self._takes_input or self._begun_at is None:
                is_wanted = False
            elif self._closes_input and not self._pending:
                self._takes_input = is_wanted = False
            else:
                is_wanted = bool(self._pending)
        if is_wanted and stdin not in selector.get_map():
            selector.register(stdin, selectors.EVENT_WRITE)
        elif not is_wanted and stdin in selector.get_map():
            selector.unregister(stdin)
        if not self._takes_input and self._stdin_is_open:
            self._stdin_is_open = False
            os.close(stdin)

    def _deadlines(self) -> list[tuple[float, str]]:
        limits, begun = self._limits, self._begun_at
        found: list[tuple[float, str]] = []
        if begun is not None and limits.max_lifetime is not None:
            found.append((begun + limits.max_lifetime, f"it had run for {limits.max_lifetime:g} s"))
        if begun is not None and limits.max_idle is not None:
            found.append((self._active_at + limits.max_idle, f"it was idle for {limits.max_idle:g} s"))
        return found

    def _patience(self) -> float | None:
        """Return how long to wait for the next event, in seconds."""
        if self._is_killed:
            return None
        until = [at for at, _ in self._deadlines()] if self._kill_at is None else [self._kill_at]
        return max(min(until) - monotonic(), 0) if until else None

    def _enforce_limits(self) -> None:
        """Terminate the program if its time is up or if that was requested."""
        now = monotonic()
        with self._changed:
            if self._reason is None:
                self._reason = next((reason for at, reason in self._deadlines() if at <= now), None)
            if self._reason is None:
                return
        if self._kill_at is None:
            is_held = self._begun_at is None
            self._kill_at = now if is_held else now + self._limits.grace
            if not is_held:
                self._program.signal(signal.SIGTERM)
                # A stopped process would not receive SIGTERM otherwise.
                self._program.signal(signal.SIGCONT)
        if not self._is_killed and now >= self._kill_at:
            self._is_killed = True
            self._program.stop()

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Read what is left of the output; another program may hold its other end open."""
        until = monotonic() + _DRAINING
        program = self._program
        while program.output in selector.get_map():
            before = self._ring.total
            self._read_output(selector)
            # Checked after reading: this thread may not have run for a while, and what is in the pipe must be read.
            if monotonic() >= until:
                return
            if self._ring.total == before:
                selector.select(0.01)

    def _finish(self) -> None:
        program = self._program
        try:
            end = program.end()
        except BaseException:
            logger.exception("cannot find out how process %s ended", self.process_id)
            end = ProgramEnd(None, "its end was not reported")
        with self._changed:
            for descriptor in (program.output, program.status, self._wake):
                os.close(descriptor)
            if self._stdin_is_open:
                os.close(program.stdin)
            self._wake, self._takes_input, self._stdin_is_open = -1, False, False
            self._pending.clear()
            reasons = [reason for reason in (self._reason, end.problem) if reason is not None]
            self._ending = ProcessEnding(end.exit_code, "; ".join(reasons) or None)
            self._changed.notify_all()
