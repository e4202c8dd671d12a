"""The supervisor inside a container, which starts commands and programs when asked, and kills them.

A request to it takes 1 ms, whereas `podman exec` takes 160 ms.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from errno import EBUSY, EIO, ENXIO, EPIPE, ETIMEDOUT
from importlib import resources
from threading import Lock
from time import monotonic
from typing import TypeVar

from weakfs.backends.container.commands.command_files import (
    OPEN_TO_ALL,
    READING,
    WRITING,
    has_reader,
    make_fifo,
)
from weakfs.backends.container.commands.process_list import ProcessList
from weakfs.errors import fault
from weakfs.platforms import Opened, fcntl
from weakfs.snapshots.directory.entries import DIRECTORY, HANDLE
from weakfs.snapshots.directory.entries import remove as remove_entry

# Timeouts in seconds: for the supervisor to start, for processes to die, and for a container to end.
STARTING, KILLING, STOPPING = 30.0, 10.0, 30.0

# How often dead processes are looked for.
PAUSE = 0.0005

# The maximum number of processes in one request.
MOST_NAMED = 500

# The process id by which kill(2) addresses all processes except for the first one and the sender.
EVERYTHING = -1

REQUESTS = "requests"


def script() -> str:
    """Return the supervisor, a script for any POSIX shell."""
    return resources.files("weakfs.backends.container.commands").joinpath("supervisor.sh").read_text()


def make_control(path: str, directory: int | None) -> None:
    """Make the directory through which a supervisor is reached; `path` is relative to the open `directory`, if any."""
    os.mkdir(path, 0o755, dir_fd=directory)
    with Opened(os.open(path, DIRECTORY, dir_fd=directory)) as control:
        os.fchmod(control, 0o755)
        os.close(make_fifo(REQUESTS, control))


def remove_control(name: str, control: int) -> None:
    """Remove the open directory `control`, with its name, from the directory that contains it."""
    with Opened(os.open("..", DIRECTORY, dir_fd=control)) as parent:
        remove_entry(parent, os.fsencode(name))


def lifeline(control: int) -> int:
    """Open the requests of a supervisor before it is started. It will run until the descriptor is closed."""
    with Opened(os.open(REQUESTS, HANDLE, dir_fd=control)) as place:
        if stat.S_ISFIFO(os.fstat(place).st_mode):
            # An earlier connection has protected the FIFO.
            os.chmod(f"/proc/self/fd/{place}", OPEN_TO_ALL)
    # Without a reader they cannot be opened for writing.
    with Opened(os.open(REQUESTS, READING, dir_fd=control)):
        return os.open(REQUESTS, WRITING, dir_fd=control)


def is_read(control: int) -> bool:
    """Return whether a supervisor reads its requests."""
    try:
        os.close(os.open(REQUESTS, WRITING, dir_fd=control))
    except OSError as error:
        if error.errno != ENXIO:
            raise
        return False
    return True


E = TypeVar("E", bound=OSError)


def _unusable(kind: type[E], number: int, why: str) -> E:
    return fault(kind, number, f"cannot run commands in the container: {why}")


class Supervisor:
    """The supervisor of a running container.

    `control` is an open host directory, `mark` marks the processes of commands, and `pid` is the container's first
    process on the host. `is_running` returns whether that process is alive: once it is not, others may get its id. In
    an attached container (`end` is `None`), only processes with that mark are listed and killed. Otherwise `end` ends
    the container, if a process in it cannot be killed in any other way. `exceeded` returns why a command must end, or
    `None`; it is called often.
    """

    def __init__(
        self,
        control: int,
        pid: int,
        mark: str,
        *,
        is_running: Callable[[], bool],
        end: Callable[[], None] | None,
        exceeded: Callable[[], str | None],
    ) -> None:
        self.control = control
        self.mark = mark
        self.exceeded = exceeded
        self._pid = pid
        # Held while a command runs: all processes then belong to that command.
        self.commands = Lock()
        # The names of background programs, and the lock that is held to add one.
        self.programs: set[str] = set()
        self.admission = Lock()
        self._end = end
        self._is_running = is_running
        self._requests = -1
        self.listing = self._open_list(pid)
        try:
            self._requests = self._connected()
            if end is not None:
                self._protect()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Disconnect from the supervisor, which then ends with everything that runs under it."""
        descriptor, self._requests = self._requests, -1
        if descriptor >= 0:
            os.close(descriptor)
        self.listing.close()
        # Drop the function, which holds the directory of the layer open: programs that have ended still refer to this
        # object.
        self.exceeded = lambda: None

    def _open_list(self, pid: int) -> ProcessList:
        try:
            return ProcessList(pid, only=self.mark if self._end is None else "")
        except OSError as error:
            raise _unusable(
                OSError, error.errno or EIO, "it has ended; try again, which starts the container"
            ) from error

    def _connected(self) -> int:
        until = monotonic() + STARTING
        while True:
            try:
                return os.open(REQUESTS, WRITING, dir_fd=self.control)
            except OSError as error:
                if error.errno != ENXIO:
                    raise
            if monotonic() > until or not self._has_container:
                raise _unusable(OSError, EIO, "its supervisor does not start; the image needs a /bin/sh")
            time.sleep(0.002)

    def _protect(self) -> None:
        """Keep commands from opening the requests, which would keep the container alive without its host process.

        Only `CAP_DAC_OVERRIDE` bypasses this.
        """
        until = monotonic() + STARTING
        # Once the supervisor has read this, it has opened everything that it needs.
        self.request("")
        while self._unread() and self._has_container and monotonic() < until:
            time.sleep(PAUSE)
        os.fchmod(self._requests, 0)

    def _unread(self) -> int:
        """Return how many bytes of requests the supervisor has not read yet."""
        import termios  # not on Windows

        return int.from_bytes(fcntl.ioctl(self._requests, termios.FIONREAD, bytes(4)), sys.byteorder)

    @property
    def is_answering(self) -> bool:
        """Whether there is still a supervisor, in its directory. Processes of an attached container may end it."""
        return has_reader(self._requests) and os.fstat(self.control).st_nlink > 0

    @property
    def is_alive(self) -> bool:
        """Whether the supervisor is connected to a running container."""
        return self._requests != -1 and self._has_container

    @property
    def _has_container(self) -> bool:
        # The root of the first process disappears as soon as it ends, the process itself only when all others in the
        # container are reaped.
        return os.path.exists(f"/proc/{self._pid}/root/proc") and self._is_running()

    def request(self, line: str) -> None:
        """Send a request. Raises `OSError` (ETIMEDOUT) if the supervisor does not read it, EPIPE if it has ended."""
        try:
            # Starts with a line break, so that anything a command may have written there is a separate line.
            os.write(self._requests, f"\n{line}\n".encode())
        except BlockingIOError as error:
            raise _unusable(TimeoutError, ETIMEDOUT, "its supervisor does not answer; stop the container") from error
        except BrokenPipeError as error:
            raise _unusable(
                BrokenPipeError, EPIPE, "its supervisor has ended; try again, which starts the container"
            ) from error

    def send(self, number: int, pids: Iterable[int]) -> None:
        """Send a signal to processes."""
        left = list(pids)
        # Nothing is left of a container whose supervisor has ended.
        with suppress(BrokenPipeError, TimeoutError):
            while left and self._requests >= 0:
                self.request(f"kill -{number} {' '.join(map(str, left[:MOST_NAMED]))}")
                del left[:MOST_NAMED]

    def processes(self) -> list[int]:
        """Return the ids, in the container, of all processes but its first one."""
        return sorted(self.listing.all(marked=False))

    def kill(self, pids: Iterable[int]) -> None:
        """Kill all processes, given as `processes` returns them."""
        # All with one system call, because a process that keeps forking has a new id when a signal to the old one
        # arrives.
        self.send(signal.SIGKILL, pids if self._end is None else [EVERYTHING])

    def end_container(self) -> bool:
        """End the container because a process in it cannot be killed; return whether it has ended."""
        if self._end is None:
            return False
        self._end()
        until = monotonic() + STOPPING
        while self._has_container and monotonic() < until:
            time.sleep(PAUSE)
        return not self._has_container

    def kill_all(self, *, patience: int = 0) -> None:
        """Kill all processes, waiting `patience` pauses for them to end by themselves.

        The container is ended if some cannot be killed. Raises `OSError` (EBUSY) instead for an attached container.
        """
        # The time is counted from the first attempt, and checked before the processes are listed, since this thread may
        # not have run for a while.
        until: float | None = None
        rounds = 0
        while True:
            is_late = until is not None and monotonic() > until
            left = self.processes()
            if not left:
                return
            if is_late:
                if self.end_container():
                    return
                raise fault(
                    OSError,
                    EBUSY,
                    f"cannot stop the command: {len(left)} of its processes could not be killed; stop the container",
                )
            if rounds >= patience:
                self.kill(left)
                until = monotonic() + KILLING if until is None else until
                time.sleep(PAUSE * 10)
            time.sleep(PAUSE)
            rounds += 1

    def admit(self, name: str) -> None:
        """Allow a program to run. Raises `OSError` (EBUSY) while a command runs."""
        if not self.commands.acquire(blocking=False):
            raise fault(
                OSError,
                EBUSY,
                "cannot start a process in the container: a command has exclusive use of it; try again when it has "
                "ended",
            )
        try:
            with self.admission:
                self.programs.add(name)
        finally:
            self.commands.release()
