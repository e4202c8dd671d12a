"""Launching programs on the host: in a sandbox on one directory, or without one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from weakfs.platforms import require_linux
from weakfs.processes.background.launcher import Program, ProgramEnd
from weakfs.processes.command_options import CommandOptions
from weakfs.processes.process import Job, Running
from weakfs.processes.runner import host_path, job_of
from weakfs.processes.status import Status

_CHUNK = 1 << 16


class HostLauncher:
    """Starts programs in a host directory, each under a supervisor that kills it when this process dies."""

    def __init__(self, directory: str, options: CommandOptions, *, mounted_at: str | None = None) -> None:
        require_linux("run a command", "run it in a container or a virtual machine with Linux")
        self._top = os.path.realpath(directory)
        self._options = options
        # The path at which the sandbox shows the directory, if different from its own.
        self._mounted_at = mounted_at

    def mounted(self, mounted_at: str) -> HostLauncher:
        """Return a launcher of programs that see the directory at another path."""
        return HostLauncher(self._top, self._options, mounted_at=mounted_at)

    def launch(self, arguments: Sequence[str], *, directory: str) -> Program:
        """Launch a program in a directory; see `Launcher`."""
        place = host_path(self._top, directory)
        job, problem = job_of(arguments, self._top, place, self._options, mounted_at=self._mounted_at, is_held=True)
        return HostProgram(job, problem)


class HostProgram:
    """A program under a supervisor on this host; see `Program`."""

    def __init__(self, job: Job, unsandboxed_because: str | None) -> None:
        self.unsandboxed_because = unsandboxed_because
        self._job = job
        self._status = Status()
        ends: list[int] = []
        try:
            for _ in range(3):
                ends += os.pipe()
            reads, self.stdin, self.output, writes, self.status, reports = ends
            for own in (self.stdin, self.output, self.status):
                os.set_blocking(own, False)
            self._running = Running(job, (writes, writes, reports), stdin=reads)
        except BaseException:
            for end in ends:
                os.close(end)
            raise
        for end in (reads, writes, reports):
            os.close(end)

    def begin(self) -> None:
        """Let the program run."""
        self._running.begin()

    def signal(self, number: int) -> None:
        """Send a signal to the program's group."""
        self._running.signal(number)

    def stop(self) -> None:
        """Have the program and everything that it started killed."""
        self._running.kill()

    def read_status(self) -> bool:
        """Read the supervisor's reports; return whether it has ended together with everything that it started."""
        with suppress(BlockingIOError):
            self._status.add(os.read(self.status, _CHUNK))
        return self._status.closed

    def end(self) -> ProgramEnd:
        """Return how the program ended."""
        status, is_sandboxed = self._status, self._job.sandboxed
        returncode = self._running.end(status)
        exit_code = status.exit_code if is_sandboxed and not status.exceeded else status.ended
        return ProgramEnd(exit_code, self._problem(returncode))

    def _problem(self, returncode: int) -> str | None:
        status = self._status
        if status.left:
            return f"{status.left} of its processes could not be killed; kill them by hand"
        if status.failure is not None:
            return f"it could not be started: {status.failure.strerror}"
        if status.exceeded:
            limits = self._job.limits
            return f"it was killed: it had more than {limits.max_processes if limits else 0} processes"
        if returncode:
            return "it was killed from outside, together with its supervisor"
        return None
