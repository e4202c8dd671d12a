"""The background processes of one directory, and which of them may have changed files."""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Mapping
from threading import RLock
from weakref import finalize

from weakfs.errors import fault
from weakfs.processes.background.errors import TooManyProcesses
from weakfs.processes.background.launcher import Program
from weakfs.processes.background.process import BackgroundProcess, ProcessLimits

# The number of ended processes whose output is kept.
MAX_ENDED = 32

# The maximum number of processes that a cause names.
_MAX_NAMED = 4

# How long to wait for the end of killed processes, in seconds; this takes a while if there are thousands.
_ENDING = 60.0


class ProcessTable:
    """All processes of one directory in this runtime. Thread-safe.

    They are terminated when the table is garbage-collected and when this runtime exits; if it is killed, their
    supervisors kill them.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._processes: dict[str, BackgroundProcess] = {}
        # The processes that may have changed files since the last complete scan.
        self._suspects: dict[str, BackgroundProcess] = {}
        finalize(self, _end_all, self._processes, "the runtime no longer uses its directory")

    def start(
        self,
        launch: Callable[[], Program],
        limits: ProcessLimits,
        *,
        new_id: Callable[[], str],
    ) -> BackgroundProcess:
        """Start a process, held until `BackgroundProcess.begin`.

        Raises `TooManyProcesses`, and the errors of `launch`.
        """
        with self._lock:
            most, running = limits.max_running, len(self.running())
            if most is not None and running >= most:
                raise fault(
                    TooManyProcesses,
                    errno.EAGAIN,
                    f"cannot start a process: {running} are running and {most} are allowed; stop one of them first",
                )
            while (process_id := new_id()) in self._processes:
                # A fork of the session counts ids independently.
                continue
            process = BackgroundProcess(process_id, launch(), limits)
            self._processes[process_id] = self._suspects[process_id] = process
            self._forget_old()
        return process

    def _forget_old(self) -> None:
        ended = [name for name, process in self._processes.items() if process.state == "ended"]
        for name in ended[:-MAX_ENDED]:
            del self._processes[name]

    @property
    def processes(self) -> Mapping[str, BackgroundProcess]:
        """The processes by id, in the order in which they were started."""
        with self._lock:
            return dict(self._processes)

    def running(self) -> list[BackgroundProcess]:
        """List the processes that have not ended, including those that are held."""
        with self._lock:
            return [process for process in self._processes.values() if process.state != "ended"]

    def suspects(self) -> tuple[BackgroundProcess, ...]:
        """Return the processes that may have changed files since the last complete scan."""
        with self._lock:
            return tuple(self._suspects.values())

    def clear(self, suspects: Collection[BackgroundProcess]) -> None:
        """Note that the files were completely scanned after the end of these processes."""
        with self._lock:
            for process in suspects:
                self._suspects.pop(process.process_id, None)

    def discard(self, process: BackgroundProcess) -> None:
        """Discard a process that never began."""
        process.end("the call that started it failed")
        process.wait(_ENDING)
        with self._lock:
            self._processes.pop(process.process_id, None)
            self._suspects.pop(process.process_id, None)

    def end_all(self, reason: str, only: Collection[str] | None = None) -> list[BackgroundProcess]:
        """Terminate all running processes, or those with these ids, and wait until they and their children are gone."""
        ended = [process for process in self.running() if only is None or process.process_id in only]
        for process in ended:
            process.end(reason)
        for process in ended:
            if not process.wait(_ENDING):
                raise fault(
                    OSError,
                    errno.EBUSY,
                    f"cannot terminate process {process.process_id}: it is still running {_ENDING:g} s after it was "
                    f"killed; kill it by hand",
                )
        return ended


def cause_of(suspects: Collection[BackgroundProcess]) -> str:
    """Return the cause of a change that any of these processes may have made."""
    names = [process.process_id for process in suspects]
    return " or ".join(names) if len(names) <= _MAX_NAMED else f"one of {len(names)} processes"


def _end_all(processes: Mapping[str, BackgroundProcess], reason: str) -> None:
    for process in list(processes.values()):
        process.end(reason)
