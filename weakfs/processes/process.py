"""A command and its supervisor, as the runtime sees them."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.processes.resource_limits import CommandLimits
from weakfs.processes.status import Status

_SUPERVISOR = Path(__file__).with_name("supervisor.py")

# How long the supervisor tries to kill processes, in seconds, before it gives up. A few rounds are enough for all
# processes except those that hang in the kernel.
_KILLING = 5.0

# How long a sandbox may take to end, in seconds: this takes a while on a busy machine if it has thousands of processes.
_KILLING_SANDBOX = 30.0

# How much longer the runtime waits for the supervisor itself, in seconds: on a busy machine it might not run for a
# while.
_SLACK = 30.0

# Returns a command line, given the file descriptor on which the sandbox reports its status.
CommandLine = Callable[[int], list[str]]


@frozen
class Job:
    """A command to run; in a sandbox, the command line runs bubblewrap, which reports on the command itself."""

    command_line: CommandLine
    directory: str
    environment: Mapping[str, str]
    grace: float
    sandboxed: bool
    limits: CommandLimits | None = None
    # Whether the command waits for `Running.begin`.
    is_held: bool = False


class Running:
    """A command that was started under `supervisor.py`. It writes to three pipes: output, errors and status.

    It reads from the descriptor `stdin`, or gets no input.

    bubblewrap has a supervisor as well: its own `--die-with-parent` does not notice a runtime that is killed within
    the first milliseconds (with 0.8.0, 4 of 25 such sandboxes ran on).
    """

    def __init__(self, job: Job, pipes: tuple[int, int, int], *, stdin: int | None = None) -> None:
        # In a frozen program, sys.executable is the program itself.
        if not sys.executable or getattr(sys, "frozen", False):
            raise fault(
                OSError,
                errno.ENOENT,
                "cannot run a command: there is no Python interpreter to watch over it (sys.executable); run this "
                "program with one",
            )
        out, err, status = pipes
        self._job = job
        # The kernel kills a whole sandbox at once, so SIGTERM is sent to its processes from here.
        self._grace = 0.0 if job.sandboxed else job.grace
        self._killing = _KILLING_SANDBOX if job.sandboxed else _KILLING
        words = {
            "arguments": [_latin(word) for word in job.command_line(status)],
            "environment": [_latin(f"{name}={value}") for name, value in job.environment.items()],
            "directory": _latin(job.directory),
            "grace": self._grace,
            "killing": self._killing,
            "reports_status": job.sandboxed,
            "resources": {} if job.limits is None else job.limits.resources(),
            "held": job.is_held,
            "stdin": stdin,
            "max_processes": None if job.limits is None else job.limits.max_processes,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", _SUPERVISOR, str(status)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            # The variables that an interpreter may need to find its own library.
            env={name: value for name, value in os.environ.items() if name.startswith(("LD_", "DYLD_"))},
            pass_fds=(status,) if stdin is None else (status, stdin),
            start_new_session=True,
        )
        try:
            assert self.process.stdin is not None
            self._send(json.dumps(words))
        except BaseException:
            self.end(Status())
            raise

    def begin(self) -> None:
        """Run a command that was held."""
        self._send("begin")

    def signal(self, number: int) -> None:
        """Send a signal to the command's process group, if it is still running."""
        self._send(str(number))

    def kill(self) -> None:
        """Have the supervisor kill everything, without a grace period; return immediately."""
        self._send("kill")

    def _send(self, line: str) -> None:
        assert self.process.stdin is not None
        # If the supervisor is gone already, it has written the reason to the error stream.
        with suppress(BrokenPipeError, ValueError):
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    def terminate(self, status: Status) -> bool:
        """Send SIGTERM to the command and everything that it started; return whether it could be sent."""
        if not self._job.sandboxed:
            self.stop()
            return True
        if status.first is None:
            return False
        # The first process of a sandbox ignores signals for which it has no handler; the others in its group do not.
        with suppress(OSError):
            if _parent_of(_parent_of(status.first)) == self.process.pid:
                os.killpg(status.first, signal.SIGTERM)
                return True
        return False

    def end(self, status: Status) -> int:
        """Make sure that no process of the command is running any more, and return the supervisor's exit code.

        The supervisor reports the processes that it could not kill.
        """
        self.stop()
        try:
            self.process.wait(self._grace + self._killing + _SLACK)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if self.process.returncode != 0:
                # The supervisor was killed, perhaps by the command. The processes that it had adopted are out of reach,
                # but the group is not.
                self.process.kill()
                self.process.wait()
                if status.started is not None:
                    with suppress(OSError):
                        os.killpg(status.started, signal.SIGKILL)
        return self.process.returncode

    def stop(self) -> None:
        """Have the supervisor terminate everything; return immediately."""
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):
            self.process.stdin.write(b"\n")
        with suppress(OSError):
            self.process.stdin.close()
        # A process that the runtime has forked in the meantime may keep the other end of that pipe open.
        self.process.terminate()


def _latin(text: str) -> str:
    return os.fsencode(text).decode("latin-1")


def _parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])
