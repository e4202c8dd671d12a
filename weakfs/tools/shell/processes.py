"""The two ways to run a command, with one face: in the sandbox, and under a supervisor of ours."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from weakfs.tools.shell.sandbox import command_line
from weakfs.tools.shell.status import Status

_SUPERVISOR = Path(__file__).with_name("supervisor.py")

# How long the supervisor kills processes before it gives up those that are left. A few rounds are enough for all but
# what hangs in the kernel.
_KILLING = 5.0

# How long the kernel may take to end a sandbox whose first process was killed.
_ENDING = 10.0


class Running(Protocol):
    """A command that was started. `end` may be called at any time and any number of times."""

    process: subprocess.Popen[bytes]

    def told(self, status: Status) -> None:
        """Take notice of what the status pipe has told so far."""
        ...

    def ask(self) -> None:
        """Ask the command to end: SIGTERM to all that it started."""
        ...

    def end(self) -> None:
        """Make sure that nothing of the command runs any more. Raises `OSError` if that cannot be had."""
        ...


class Sandboxed:
    """A command below bubblewrap: the kernel has ended all its processes when the first one counts as ended."""

    def __init__(
        self,
        program: str,
        directory: str,
        workdir: str,
        arguments: list[str],
        environment: Mapping[str, str],
        pipes: tuple[int, int, int],
        *,
        readable: Iterable[str] = (),
    ) -> None:
        out, err, status = pipes
        self.process = subprocess.Popen(
            command_line(program, directory, workdir, status, arguments, readable=readable),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
            pass_fds=(status,),
            start_new_session=True,
        )
        self._first: int | None = None
        self._group = 0
        self._seen = False

    def told(self, status: Status) -> None:
        if status.child is None or self._seen:
            return
        self._seen = True
        with suppress(OSError):
            first = os.pidfd_open(status.child)
            # It is this sandbox's, or it has ended and the number was given to another process.
            if _parent_of(status.child) == self.process.pid:
                self._first, self._group = first, status.child
            else:
                os.close(first)

    def ask(self) -> None:
        # The first process of a sandbox takes no signal for which it has no handler; the others of its group do.
        if self._first is not None and not _is_over(self._first, 0):
            with suppress(OSError):
                os.killpg(self._group, signal.SIGTERM)

    def end(self) -> None:
        if self._first is not None:
            with suppress(OSError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        with suppress(OSError):
            self.process.kill()
        self.process.wait()
        if self._first is None:
            return
        if not _is_over(self._first, _ENDING):
            raise OSError(errno.EBUSY, "cannot end the command's sandbox: the kernel does not let go of it; try again")
        os.close(self._first)
        self._first = None


class Supervised:
    """A command below `supervisor.py`, with the rights of the runtime."""

    def __init__(
        self,
        workdir: str,
        arguments: list[str],
        environment: Mapping[str, str],
        pipes: tuple[int, int, int],
        *,
        grace: float,
    ) -> None:
        if not sys.executable:
            raise OSError(
                errno.ENOENT,
                "cannot run a command without a sandbox: the Python interpreter's path is unknown; set sys.executable",
            )
        out, err, status = pipes
        self._grace = grace
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", _SUPERVISOR, str(status)],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=err,
            # What an interpreter may need to find its own library.
            env={name: value for name, value in os.environ.items() if name.startswith(("LD_", "DYLD_"))},
            pass_fds=(status,),
            start_new_session=True,
        )
        self._command: int | None = None
        job = {
            "arguments": [_latin(word) for word in arguments],
            "environment": [_latin(f"{name}={value}") for name, value in environment.items()],
            "directory": _latin(workdir),
            "grace": float(grace),
            "killing": _KILLING,
        }
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(job).encode() + b"\n")
            self.process.stdin.flush()
        except BaseException:
            self.end()
            raise

    def told(self, status: Status) -> None:
        self._command = status.child

    def ask(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        # A process that the runtime forked meanwhile may hold the pipe's other copy.
        self.process.terminate()

    def end(self) -> None:
        self.ask()
        try:
            self.process.wait(self._grace + _KILLING + 1)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if self.process.returncode != 0:
                # It was killed, perhaps by the command. What it had adopted is out of reach; the group is not.
                self.process.kill()
                self.process.wait()
                if self._command is not None:
                    with suppress(OSError):
                        os.killpg(self._command, signal.SIGKILL)


def _latin(text: str) -> str:
    return os.fsencode(text).decode("latin-1")


def _is_over(pidfd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(int(seconds * 1000)))


def _parent_of(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])
