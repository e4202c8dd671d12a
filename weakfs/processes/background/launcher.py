"""Launchers: the interface to a place where programs run, whether the host, a sandbox or a container.

A launcher starts programs; everything else about a background process (its thread, its output, its limits, its end) is
the same for all places and uses a program only by this interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from weakfs.class_decorators import frozen


@frozen
class ProgramEnd:
    """How a program ended.

    `exit_code` is 128 + n if signal n killed the program, and `None` if it is unknown, as for a program that was ended
    together with its sandbox. `problem` says in a few words what went wrong: it could not be started, it exceeded a
    limit, some of its processes could not be killed.
    """

    exit_code: int | None
    problem: str | None = None


class Program(Protocol):
    """A program that was launched. It is held: nothing of it runs before `begin`.

    The three descriptors belong to whoever launched the program, who closes them; they are this process's ends of
    pipes, and none blocks. `stdin` is written to. `output` is read: standard output and standard error together, in the
    order in which they were written. `status` is readable when `read_status` has something to read.

    Every method may be called at any time, also when the program has ended, and by any thread.
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
        """Have the program killed together with every process that it started; return at once."""
        ...

    def read_status(self) -> bool:
        """Read what is new on `status`; return whether everything of the program has ended."""
        ...

    def end(self) -> ProgramEnd:
        """Return how the program ended, and free what it used. Called once, when nothing of it is left running."""
        ...


class Launcher(Protocol):
    """A place where programs run.

    A program must not outlive this process, however that ends, and neither may anything that the program started. When
    the program itself ends, the launcher ends what it left behind.
    """

    def launch(self, arguments: Sequence[str], *, directory: str) -> Program:
        """Launch a program in a directory, given by its canonical path in the filesystem.

        Raises `OSError` if that is not possible, such as `SandboxUnavailable`; nothing is then left behind.
        """
        ...
