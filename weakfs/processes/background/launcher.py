"""Launchers: the interface to a place where programs run, whether the host, a sandbox or a container.

A launcher starts programs. Everything else about a background process (its thread, its output, its limits, its end) is
the same for all places, and uses a program only through this interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weakfs.class_decorators import frozen


@frozen
class ProgramEnd:
    """How a program ended.

    `exit_code` is 128 + n if signal n killed the program, and `None` if it is unknown, as for a program that was killed
    together with its sandbox. `problem` says briefly what went wrong: it could not be started, it exceeded a limit,
    or some of its processes could not be killed.
    """

    exit_code: int | None
    problem: str | None = None


class Program(Protocol):
    """A program that was launched. It is held: it does not run before `begin`.

    The three descriptors are this process's ends of pipes, and do not block; the code that launched the program must
    close them. `stdin` is for writing. `output` is for reading standard output and standard error together, in the
    order in which they were written. `status` is readable when `read_status` has something to read.

    Any thread may call any method at any time, even after the program has ended.
    """

    @property
    def stdin(self) -> int: ...
    @property
    def output(self) -> int: ...
    @property
    def status(self) -> int: ...
    @property
    def unsandboxed_because(self) -> str | None:
        """Why the program is not isolated; `None` if it is."""
        ...

    def begin(self) -> None:
        """Let the program run."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal to the program and the processes in its group, if it is running."""
        ...

    def stop(self) -> None:
        """Have the program killed together with all processes that it started; return immediately."""
        ...

    def read_status(self) -> bool:
        """Read new data from `status`; return whether the program and all its processes have ended."""
        ...

    def end(self) -> ProgramEnd:
        """Return how the program ended, and free its resources.

        This is called once, when none of its processes is running.
        """
        ...


class Launcher(Protocol):
    """A place where programs run.

    Neither a program nor anything that it started may outlive this process, however that ends. When the program itself
    ends, the launcher kills the processes that it left behind.
    """

    def launch(self, arguments: Sequence[str], *, directory: str) -> Program:
        """Launch a program in a directory, given by its canonical path in the filesystem.

        Raises `OSError`, such as `SandboxUnavailable`, if that is impossible; then nothing is left behind.
        """
        ...
