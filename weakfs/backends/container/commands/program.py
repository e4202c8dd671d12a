"""Launching programs in a container that outlive a call: see `weakfs.processes.background`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic

from weakfs.backends.container.commands.command_files import CommandFiles, is_readable, script_of
from weakfs.backends.container.commands.process_list import Listed, started_by
from weakfs.backends.container.commands.supervisor import KILLING, PAUSE, Supervisor
from weakfs.class_decorators import frozen
from weakfs.processes import CommandLimits
from weakfs.processes.background import Program, ProgramEnd

# How often programs are checked against their limits.
CHECKING = 0.1


@frozen(eq=False)
class ContainerLauncher:
    """Launches programs under a container's supervisor, which kills them when this process dies.

    `workdir_of` turns a canonical path into one of the container.
    """

    supervisor: Supervisor
    workdir_of: Callable[[str], str]
    environment: Mapping[str, str]
    limits: CommandLimits

    def launch(self, arguments: Sequence[str], *, directory: str) -> Program:
        """Launch a program in a directory; see `Launcher`."""
        text = script_of([*arguments], self.workdir_of(directory), self.environment, self.limits)
        return ContainerProgram(self.supervisor, text, self.limits.max_processes)


class ContainerProgram:
    """A program in a container; see `Program`. A thread checks it against its limits while it runs."""

    unsandboxed_because = None

    def __init__(self, supervisor: Supervisor, text: str, most: int | None) -> None:
        self._supervisor = supervisor
        self._most = most
        self._problem: str | None = None
        self._is_stopped = False
        # Held to read the status, and to begin or to stop.
        self._lock = Lock()
        self._has_ended = self._is_begun = False
        self._over = Event()
        self._watching = Thread(target=self._watch, name="weakfs limits of a program", daemon=True)
        self._files = CommandFiles(supervisor.control, text, takes_input=True)
        self.stdin, self.output, self.status = self._files.stdin, self._files.out, self._files.status
        try:
            supervisor.admit(self._files.name)
        except BaseException:
            self._files.remove()
            raise
        self._files.disown(self.stdin, self.output, self.status)

    def begin(self) -> None:
        """Let the program run."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_begun = True
            try:
                self._supervisor.request(f"run {self._files.name}")
            except OSError:
                # The container was stopped, so everything in it has ended.
                self._files.end_status()
        self._watching.start()

    def signal(self, number: int) -> None:
        """Send a signal to the program's group, as soon as there is one."""
        until, is_late = monotonic() + KILLING, False
        while self._is_begun and not self._read() and not is_late:
            is_late = monotonic() > until
            found = self._processes()
            # The parent of the program is a process of the supervisor; the parent of an orphan is the first process.
            first = next((one for one in found.values() if one.parent != 1 and one.parent not in found), None)
            if first is not None:
                # All commands share the group of the supervisor, unless they have made one of their own.
                self._supervisor.send(number, [pid for pid, one in found.items() if one.group == first.group])
                return
            time.sleep(PAUSE)

    def stop(self) -> None:
        """Kill all processes of the program."""
        with self._lock:
            self._is_stopped = True
            if not self._is_begun:
                self._files.end_status()
                return
        # The time is counted from the first attempt, since this thread may not have run for a while.
        until: float | None = None
        while not self._read():
            if until is not None and monotonic() > until:
                if not self._read():
                    self._supervisor.end_container()
                    with self._lock:
                        if not self._has_ended:
                            # If the supervisor never reads the request, nothing else reports an end.
                            self._files.remove_script()
                            self._files.end_status()
                return
            self._kill()
            until = monotonic() + KILLING if until is None else until
            time.sleep(PAUSE * 10)

    def _kill(self) -> None:
        supervisor = self._supervisor
        with supervisor.admission:
            if supervisor.programs <= {self._files.name}:
                supervisor.kill(supervisor.processes())
            else:
                supervisor.send(signal.SIGKILL, self._processes())

    def read_status(self) -> bool:
        """Read the status, and kill the processes that an ended program left. Return whether all of them have ended."""
        if not self._read():
            return False
        self._kill_rest()
        return True

    def end(self) -> ProgramEnd:
        """Return how the program ended."""
        self._supervisor.programs.discard(self._files.name)
        with self._lock:
            self._has_ended = True
            self._files.remove()
        self._over.set()
        if self._watching.is_alive():
            self._watching.join(KILLING)
        code, problem = self._files.exit_code, self._problem
        if code is None and self._is_begun and problem is None:
            if self._is_stopped:
                # The shell that would have reported the exit code was killed with the program.
                code = 128 + signal.SIGKILL
            else:
                problem = "it was killed from outside, or its container was stopped"
        return ProgramEnd(code, problem)

    def _read(self) -> bool:
        """Read the status; return whether it has ended."""
        with self._lock:
            # Before the FIFO is opened for writing, reading it would return the end of the file, whereas polling waits.
            if not self._has_ended and is_readable(self.status):
                self._files.read_status()
                self._files.close_reader()
                self._has_ended = self._files.has_ended
            return self._has_ended

    def _processes(self) -> dict[int, Listed]:
        """Return the program's processes."""
        supervisor = self._supervisor
        return started_by(supervisor.listing.all(), supervisor.mark + self._files.name)

    def _kill_rest(self) -> None:
        supervisor = self._supervisor
        # The time is counted from the first attempt, and checked before the processes are listed, since this thread may
        # not have run for a while.
        until: float | None = None
        supervisor.programs.discard(self._files.name)
        while supervisor.is_alive:
            is_late = until is not None and monotonic() > until
            # A process that cleared its environment cannot be attributed to a program, so it is killed along with the
            # last program. No other program is started in the meantime.
            with supervisor.admission:
                left = list(self._processes() if supervisor.programs else supervisor.processes())
                if supervisor.programs:
                    supervisor.send(signal.SIGKILL, left)
                elif left:
                    supervisor.kill(left)
            if not left:
                return
            if is_late:
                if supervisor.end_container():
                    return
                self._problem = f"{len(left)} of its processes could not be killed; stop the container"
                return
            until = monotonic() + KILLING if until is None else until
            time.sleep(PAUSE * 2)

    def _watch(self) -> None:
        supervisor, most = self._supervisor, self._most
        while not self._is_stopped and not self._over.wait(CHECKING):
            if not supervisor.is_alive:
                with self._lock, suppress(OSError):
                    if not self._has_ended:
                        self._files.end_status()
                return
            why = supervisor.exceeded()
            if why is None and most is not None and len(self._processes()) > most:
                why = f"it had more than {most} processes"
            if why is not None:
                self._problem = f"it was killed: {why}"
                self.stop()
