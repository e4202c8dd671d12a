"""Commands in a container, handed to a supervisor inside it: 1 ms where `podman exec` takes 160."""

from __future__ import annotations

import os
import secrets
import selectors
import shlex
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from errno import EBUSY, EIO, ENXIO
from importlib import resources
from time import monotonic
from types import TracebackType

from weakfs.filesystem.errors import fault
from weakfs.processes import CommandLimits, CompletedCommand, StopEvent
from weakfs.processes.output import HeadAndTail
from weakfs.session.interruption import uninterrupted
from weakfs.snapshots.directory.entries import DIRECTORY
from weakfs.snapshots.directory.entries import remove as remove_entry

CHUNK = 1 << 16

# How long the supervisor may take to start, its processes to die, and the output of dead processes to be read.
STARTING, KILLING, DRAINING = 30.0, 10.0, 1.0

# How often processes are counted, and how often it is seen whether they have died.
COUNTING, PAUSE = 0.02, 0.0005

# Within so many pauses a command's own shell ends after it has reported the exit code, and `execve` ends.
ENDING, EXECUTING = 20, 5

REQUESTS = "requests"


def script() -> str:
    """Return the supervisor, a script for any POSIX shell."""
    return resources.files("weakfs.backends.container").joinpath("supervisor.sh").read_text()


def make_control(path: str, directory: int | None) -> None:
    """Make the directory through which a supervisor is reached; `path` is relative to the open `directory`, if any."""
    os.mkdir(path, 0o755, dir_fd=directory)
    os.chmod(path, 0o755, dir_fd=directory)
    place = os.path.join(path, REQUESTS)
    os.mkfifo(place, dir_fd=directory)
    # Inside, an unprivileged user reads it. The directories above it on the host are private.
    os.chmod(place, 0o666, dir_fd=directory)


class Supervisor:
    """The supervisor of a running container: `control` is an open directory of the host, `inside` its path in the
    container, and `pid` the container's first process on the host.

    In a container of somebody else (`is_alone` false), only processes that commands have started are listed and killed.
    They are known by a variable of their environment.
    """

    def __init__(self, control: int, inside: str, pid: int, *, is_alone: bool) -> None:
        self._control = control
        self.inside = inside
        self._pid = pid
        self._mark = None if is_alone else f"WEAKFS_COMMAND={secrets.token_hex(8)}"
        self._requests = self._connected()
        self._proc = os.open(f"/proc/{pid}/root/proc", DIRECTORY)

    def close(self) -> None:
        """Let go of the supervisor; it kills what runs and waits for another host."""
        for descriptor in (self._requests, self._proc):
            os.close(descriptor)

    def _connected(self) -> int:
        until = monotonic() + STARTING
        while True:
            try:
                return os.open(
                    REQUESTS, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._control
                )
            except OSError as error:
                if error.errno != ENXIO:
                    raise
            if monotonic() > until or not os.path.exists(f"/proc/{self._pid}"):
                raise fault(
                    OSError,
                    EIO,
                    "cannot run commands in the container: its supervisor does not start; the image needs a /bin/sh",
                )
            time.sleep(0.002)

    def request(self, line: str) -> None:
        """Send a request."""
        os.write(self._requests, f"{line}\n".encode())

    def processes(self) -> list[int]:
        """List the processes in the container by their ids there, without its first one and those that have died."""
        found: list[int] = []
        seen = {"1"}
        with suppress(OSError):
            # One that dies after it was listed may have started another, which the list does not hold.
            while not found and (new := {name for name in os.listdir(self._proc) if name.isdigit()} - seen):
                found = [int(name) for name in new if self._is_alive(name)]
                seen |= new
        return sorted(found)

    def _is_alive(self, pid: str) -> bool:
        try:
            descriptor = os.open(f"{pid}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
        except OSError:
            return False
        try:
            is_alive = os.read(descriptor, 4096).rpartition(b")")[2].split()[0] not in (b"Z", b"X")
        except (OSError, IndexError):
            return False
        finally:
            os.close(descriptor)
        return is_alive and (self._mark is None or self._is_marked(pid, self._mark))

    def _is_marked(self, pid: str, mark: str) -> bool:
        for _ in range(EXECUTING):
            try:
                descriptor = os.open(f"{pid}/environ", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._proc)
                with open(descriptor, "rb") as file:
                    variables = file.read()
            except OSError:
                return False
            if variables:
                return mark.encode() in variables.split(b"\0")
            # While a process becomes another program, it shows no variables for a moment.
            time.sleep(PAUSE)
        return False

    def kill_all(self, *, patience: int = 0) -> None:
        """Kill all processes, waiting `patience` pauses for them to end by themselves.

        Raises `OSError` (EBUSY) if some cannot be killed.
        """
        until = monotonic() + KILLING
        rounds = 0
        while left := self.processes():
            if rounds >= patience:
                self.request(f"kill {' '.join(map(str, left[:500]))}")
                time.sleep(PAUSE * 10)
            if monotonic() > until:
                raise fault(
                    OSError,
                    EBUSY,
                    f"cannot end the command: {len(left)} of its processes could not be killed; stop the container",
                )
            time.sleep(PAUSE)
            rounds += 1

    def run(
        self,
        command: str,
        *,
        workdir: str,
        environment: Mapping[str, str],
        timeout: float,
        max_output: int,
        limits: CommandLimits,
        stop: StopEvent | None = None,
    ) -> CompletedCommand:
        """Run a line of shell until it ends or is stopped. Afterwards nothing of it is left."""
        if self._mark is not None:
            name, _, value = self._mark.partition("=")
            environment = {**environment, name: value}
        text = _script(command, workdir, environment, limits)
        with Command(self, self._control, text, max_output) as running:
            try:
                timed_out, exceeded = running.until_ended(timeout, stop, limits.max_processes)
            finally:
                with uninterrupted():
                    ended_by_itself = running.status is not None
                    self.kill_all(patience=ENDING if ended_by_itself else 0)
            running.drain()
        exit_code = 128 + signal.SIGKILL if exceeded else running.status
        if exceeded:
            running.err.add(f"[the command was killed: it had more than {limits.max_processes} processes]\n".encode())
        if exit_code is None and not timed_out:
            raise fault(OSError, EIO, "the command was killed from outside; see whether the container still runs")
        err = running.err.text()
        return CompletedCommand(
            exit_code=None if timed_out else exit_code,
            stdout=running.out.text(),
            stderr=err,
            timed_out=timed_out,
            sandboxed=True,
            unsandboxed_because=None,
            stdout_left_out=running.out.left_out,
            stderr_left_out=running.err.left_out,
            limits_hit=limits.likely_hit(exit_code, err, "max_processes" if exceeded else None),
        )


class Command:
    """One command in a container, with a directory of its own for the time that it runs."""

    def __init__(self, supervisor: Supervisor, control: int, text: str, max_output: int) -> None:
        self._supervisor = supervisor
        self._control = control
        self._text = text
        self.out, self.err = HeadAndTail(max_output), HeadAndTail(max_output)
        self._said = b""

    @property
    def status(self) -> int | None:
        """The exit code; `None` until the command has ended."""
        return int(self._said) if self._said.endswith(b"\n") and self._said.strip().isdigit() else None

    def __enter__(self) -> Command:
        self._name = secrets.token_hex(8)
        os.mkdir(self._name, 0o755, dir_fd=self._control)
        self._open: list[int] = []
        self._selector = selectors.DefaultSelector()
        try:
            here = os.open(self._name, DIRECTORY, dir_fd=self._control)
            try:
                self._fill(here)
            finally:
                os.close(here)
            self._supervisor.request(f"run {self._name}")
        except BaseException:
            self._close()
            raise
        return self

    def _fill(self, here: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        for name, text in (("script", self._text.encode("utf-8", "surrogateescape")), ("in", b"")):
            descriptor = os.open(name, flags, 0o644, dir_fd=here)
            try:
                os.fchmod(descriptor, 0o644)
                while text:
                    text = text[os.write(descriptor, text) :]
            finally:
                os.close(descriptor)
        for name, take in (("out", self.out.add), ("err", self.err.add), ("status", self._add_status)):
            os.mkfifo(name, dir_fd=here)
            os.chmod(name, 0o666, dir_fd=here)
            descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
            self._open.append(descriptor)
            self._selector.register(descriptor, selectors.EVENT_READ, take)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._selector.close()
        for descriptor in self._open:
            os.close(descriptor)
        with suppress(OSError):
            remove_entry(self._control, self._name.encode())

    def _add_status(self, data: bytes) -> None:
        self._said += data

    def until_ended(self, timeout: float, stop: StopEvent | None, most: int | None) -> tuple[bool, bool]:
        """Read until the command ends; return whether it timed out or was stopped, and whether it forked too often."""
        stopped: list[bytes] = []
        if stop is not None:
            self._selector.register(stop.descriptor, selectors.EVENT_READ, stopped.append)
        until = monotonic() + timeout
        was_seen = False
        while self.status is None and not stopped:
            left = until - monotonic()
            if left <= 0:
                return True, False
            if self._read(min(left, COUNTING), stop):
                continue
            count = len(self._supervisor.processes())
            if most is not None and count > most:
                return False, True
            if was_seen and not count and not self._read(0, stop):
                # It was killed along with the shell that reports its exit code.
                break
            was_seen = was_seen or count > 0
        return bool(stopped) and self.status is None, False

    def _read(self, seconds: float, stop: StopEvent | None = None) -> bool:
        """Read what there is; return whether there was anything."""
        found = self._selector.select(seconds)
        for key, _ in found:
            take: Callable[[bytes], None] = key.data
            if stop is not None and key.fd == stop.descriptor:
                take(b"")
                continue
            with suppress(BlockingIOError):
                data = os.read(key.fd, CHUNK)
                take(data)
                if not data:
                    self._selector.unregister(key.fd)
        return bool(found)

    def drain(self) -> None:
        """Read what is left in the pipes when nothing writes any more."""
        until = monotonic() + DRAINING
        while monotonic() < until and self._read(0):
            pass


def _script(command: str, workdir: str, environment: Mapping[str, str], limits: CommandLimits) -> str:
    """Return the script that sets a command up and becomes it."""
    found = (
        ("d", limits.max_memory, 1024),
        ("f", limits.max_file_size, 512),
        ("n", limits.max_open_files, 1),
        ("t", limits.max_cpu_seconds, 1),
    )
    lines = [f"ulimit -{letter} {value // unit} 2>/dev/null" for letter, value, unit in found if value is not None]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    return "\n".join((*lines, f"cd -- {shlex.quote(workdir)} || exit", f"exec /bin/sh -c {shlex.quote(command)}", ""))
