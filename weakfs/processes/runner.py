"""Running a command in a directory until it ends or times out."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from shutil import which
from typing import Protocol, runtime_checkable

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.messages import clip, one_line
from weakfs.platforms import require_linux
from weakfs.processes.command_options import ENVIRONMENT, CommandOptions, select
from weakfs.processes.command_watch import StopEvent, Watch
from weakfs.processes.process import Job
from weakfs.processes.resource_limits import CommandLimits
from weakfs.processes.sandbox import (
    Bubblewrap,
    SandboxMode,
    check_mount_point,
    confined,
    private_variables,
    why_not_sandboxed,
)
from weakfs.reducers.tree import name_escaping as names

MAX_OUTPUT = 32 * 1024
TIMEOUT = 120.0
GRACE = 1.0

# Linux accepts arguments of at most 32 pages, including the NUL at the end.
MAX_COMMAND = 32 * 4096 - 1


@frozen(kw_only=True)
class CompletedCommand:
    """How a command ended and what it printed.

    `exit_code` is 128 + n for a command that signal n killed, as in a shell, and `None` for one that timed out. The
    middle of long output is omitted, with a note of how many bytes. `unsandboxed_because` says why there was no
    sandbox; `None` if there was one. `limits_hit` names the limits that a command in the sandbox seems to have reached.
    """

    exit_code: int | None
    stdout: str
    stderr: str
    timed_out: bool
    sandboxed: bool
    unsandboxed_because: str | None
    stdout_left_out: int
    stderr_left_out: int
    limits_hit: tuple[str, ...] = ()

    @property
    def truncated(self) -> bool:
        """Whether some of the output is omitted."""
        return self.stdout_left_out + self.stderr_left_out > 0


@runtime_checkable
class RunsCommands(Protocol):
    """A place that runs commands itself, such as a container, instead of exposing its files to commands on the host."""

    def run_command(
        self,
        command: str,
        *,
        workdir: str,
        timeout: float = TIMEOUT,
        max_output: int = MAX_OUTPUT,
        environment_allow: Iterable[str] = ENVIRONMENT,
        environment: Mapping[str, str] | None = None,
        limits: CommandLimits = CommandLimits(),  # noqa: B008  # frozen
        stop: StopEvent | None = None,
    ) -> CompletedCommand:
        """Run a shell command in a directory, given by its canonical path; otherwise like the function `run_command`.

        The variables in `ENVIRONMENT` come from the place itself, not from the runtime's environment.
        """
        ...


def run_command(
    command: str,
    directory: str,
    *,
    workdir: str | None = None,
    timeout: float = TIMEOUT,
    max_output: int = MAX_OUTPUT,
    environment_allow: Iterable[str] = ENVIRONMENT,
    environment: Mapping[str, str] | None = None,
    sandbox: SandboxMode = "required",
    bubblewrap: Bubblewrap | None = None,
    limits: CommandLimits = CommandLimits(),  # noqa: B008  # frozen
    readable: Iterable[str] = (),
    shell: str = "/bin/sh",
    grace: float = GRACE,
    stop: StopEvent | None = None,
    mounted_at: str | None = None,
) -> CompletedCommand:
    """Run `shell -c command` in `workdir`, a directory below `directory`, and return how it ended.

    In the sandbox, `directory` is the only place that the command can change, and there is no network. The command sees
    it at `mounted_at`, by default at its own path; without a sandbox `mounted_at` has no effect. If no sandbox is
    available, "required" raises `SandboxUnavailable`, and "auto" runs the command without one and says why. There is no
    standard input. No process of the command is left running when this returns or raises. Its processes
    get SIGTERM, and SIGKILL `grace` seconds later, after `timeout` seconds, when `stop` is set, or when the command
    ends before its children; in the last case, a sandbox sends SIGKILL immediately. `limits` apply in the sandbox; a
    command that exceeds one fails, or is killed if it has too many processes. At most `max_output` bytes of each stream
    are kept. The command sees the environment variables that `environment_allow` names, and those in `environment`.

    Raises `ValueError` if the command cannot be passed to a shell, `OSError` if it could not be started or killed, and
    `OSError` (ENOTSUP) on systems other than Linux.
    """
    require_linux("run a command", "run it in a container or a virtual machine with Linux")
    check_command(command)
    if mounted_at is not None:
        check_mount_point(mounted_at)
    check_bounds(timeout, max_output)
    options = CommandOptions(
        sandbox=sandbox,
        environment_allow=tuple(environment_allow),
        environment=environment or {},
        readable=tuple(readable),
        shell=shell,
        bubblewrap=Bubblewrap() if bubblewrap is None else bubblewrap,
        limits=limits,
    )
    top = os.path.realpath(directory)
    place = _inside(top, directory, workdir)
    job, problem = job_of([shell, "-c", command], top, place, options, mounted_at=mounted_at, grace=grace)
    with Watch(job, max_output) as watch:
        timed_out = watch.until_ended(timeout, stop)
    status, out, err = watch.status, watch.out, watch.err
    if status.left:
        raise fault(
            OSError,
            errno.EBUSY,
            f"cannot stop the command: {status.left} of its processes could not be killed; kill them by hand",
        )
    if status.failure is not None:
        raise fault(
            type(status.failure),
            status.failure.errno or errno.EIO,
            f"cannot start {shell} in {place!r}: {status.failure.strerror}; check that both exist",
        )
    exit_code = status.exit_code if job.sandboxed and not status.exceeded else status.ended
    if status.exceeded:
        err.add(f"[the command was killed: it had more than {limits.max_processes} processes]\n".encode())
    if exit_code is None and not timed_out:
        raise fault(OSError, errno.EIO, _unreported(status.ended, watch.returncode, err.text()))
    return CompletedCommand(
        exit_code=None if timed_out else exit_code,
        stdout=out.text(),
        stderr=err.text(),
        timed_out=timed_out,
        sandboxed=job.sandboxed,
        unsandboxed_because=problem,
        stdout_left_out=out.left_out,
        stderr_left_out=err.left_out,
        limits_hit=limits.likely_hit(exit_code, err.text(), status.exceeded) if job.sandboxed else (),
    )


def job_of(
    arguments: Sequence[str],
    top: str,
    place: str,
    options: CommandOptions,
    *,
    mounted_at: str | None,
    grace: float = GRACE,
    is_held: bool = False,
) -> tuple[Job, str | None]:
    """Return a job that runs a program in `place`, a directory in `top`, and why it runs without a sandbox, if it does.

    Raises `SandboxUnavailable` if the options require a sandbox and there is none.
    """
    problem = why_not_sandboxed(options.sandbox, options.bubblewrap, top)
    program = None if problem else options.bubblewrap.program
    limits = options.limits

    def command_line(status: int) -> list[str]:
        words = list(arguments)
        if program is None:
            return words
        size = limits.max_tmp_size if options.bubblewrap.can_limit_tmpfs() else None
        # bwrap itself reports a missing program.
        words = limits.wrapped(words) if which(words[0]) else words
        readable = options.readable
        return confined(program, top, place, status, words, readable=readable, tmp_size=size, mounted_at=mounted_at)

    job = Job(
        command_line,
        place if program is None else "/",
        {
            **select(os.environ, options.environment_allow),
            **(private_variables(mounted_at or top) if program else {}),
            **options.environment,
        },
        float(grace),
        sandboxed=program is not None,
        limits=None if program is None else limits,
        is_held=is_held,
    )
    return job, problem


def check_command(command: str) -> None:
    """Raise `ValueError` if a command cannot be passed to a shell."""
    if "\0" in command:
        raise ValueError(
            f"cannot run the command: it contains a NUL character at {command.index(chr(0))}; leave it out"
        )
    size = len(os.fsencode(command))
    if size > MAX_COMMAND:
        raise ValueError(
            f"cannot run a command of {size} bytes: the system takes at most {MAX_COMMAND}; write it to a file and "
            f"run that"
        )


def check_bounds(timeout: float, max_output: int) -> None:
    """Raise `ValueError` if the timeout is not a finite number above 0, or the output limit is negative."""
    if not (timeout > 0 and math.isfinite(timeout)):
        raise ValueError(f"timeout is {timeout!r}; give a number of seconds above 0")
    if max_output < 0:
        raise ValueError(f"max_output is {max_output!r}; give a number of at least 0 bytes")


def host_path(directory: str, path: str) -> str:
    """Return the host path for a canonical path, below the directory that is the root."""
    below = "/".join(names.to_bytes(name).decode("utf-8", "surrogateescape") for name in path.split("/") if name)
    return f"{directory}/{below}" if below else directory


def _inside(top: str, directory: str, workdir: str | None) -> str:
    if workdir is None:
        return top
    below = os.path.relpath(workdir, directory)
    if below == os.pardir or below.startswith(os.pardir + os.sep):
        raise ValueError(f"cannot run a command in {workdir!r}: it is not below {directory!r}; name a directory there")
    return os.path.normpath(os.path.join(top, below))


def _unreported(ended: int | None, returncode: int, said: str) -> str:
    """Return the error for a command whose end was not reported, judging by how its sandbox and supervisor ended."""
    if returncode < 0 or (ended is not None and ended > 128):
        return (
            "the command was killed from outside, together with its supervisor; check whether the machine is "
            "out of memory, and try again"
        )
    what = "the supervisor" if ended is None else "bwrap"
    words = one_line(clip(said.strip(), 300))
    remedy = "fix that, or run the command without a sandbox"
    if "Can't chdir to" in words and words.endswith("Permission denied"):
        # An earlier command may have changed the mode of its own directory.
        remedy = "its mode denies access to commands: undo the call that changed it, or set its mode to 0755"
    return f"cannot start the command: {what} says {words!r}; {remedy}"
