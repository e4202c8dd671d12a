"""Background processes of a session: they start in its transactions, and each is the cause of what it changes."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, runtime_checkable

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.messages import a_type
from weakfs.processes.background.errors import ProcessesRunning, UnknownProcess
from weakfs.processes.background.launcher import Launcher
from weakfs.processes.background.process import BackgroundProcess, ProcessLimits
from weakfs.processes.background.table import ProcessTable, cause_of
from weakfs.processes.command_options import CommandOptions
from weakfs.reducers.process_events import ProcessEnded, ProcessStarted
from weakfs.session import Session


class Workplace(Protocol):
    """What a filesystem must provide so that processes can work on its files."""

    @property
    def session(self) -> Session: ...
    @property
    def filesystem_id(self) -> str: ...
    def lock(self) -> AbstractContextManager[None]:
        """Lock the session and the files against other changes."""
        ...

    def launcher(self, options: CommandOptions) -> Launcher:
        """Return the launcher that starts programs on the files."""
        ...

    def refuse_exclusive(self) -> None:
        """Raise `OSError` (EBUSY) while another call, such as a command, has exclusive use of the files."""
        ...

    def scan_changes(self, cause: str | None) -> tuple[str, ...]:
        """Scan the files, record what differs from what the session knows, and return the changed paths, sorted.

        The changes become events with the cause `cause`; without a cause, only the state of the files is recorded.
        Paths changed by unfinished work of others are left to a later scan.
        """
        ...

    def at_end(self, commit: Callable[[], object], undo: Callable[[], object]) -> bool:
        """Call `commit` or `undo` when the transaction of the running code ends; return whether it is nested.

        Outside a transaction, `commit` is called immediately.
        """
        ...


@frozen
class ProcessInfo:
    """What is known about a process.

    `state` is "held" (it starts when the transaction around the call that started it is committed), "running", "ended",
    or "lost": it ran in another runtime, and how it ended is not known.
    """

    process_id: str
    command: str
    workdir: str
    started_at: int
    state: str
    exit_code: int | None = None
    reason: str | None = None


class BackgroundProcesses:
    """The background processes on the files of one filesystem, for the session that the filesystem is bound to."""

    def __init__(self, place: Workplace, table: ProcessTable) -> None:
        self._place = place
        self._table = table

    def with_workplace(self, place: Callable[[Workplace], Workplace]) -> BackgroundProcesses:
        """Return the same processes for another workplace."""
        return BackgroundProcesses(place(self._place), self._table)

    def start(
        self, command: str, workdir: str, options: CommandOptions, limits: ProcessLimits
    ) -> tuple[BackgroundProcess, bool]:
        """Start a command in a directory; return its process, and whether it waits for an enclosing transaction.

        The command runs once the transaction of the call is committed; if that is rolled back, it never runs. Scans the
        files, so that the changes of the process can be found by comparison.
        """
        place, table = self._place, self._table
        launcher = place.launcher(options)
        with place.lock():
            place.refuse_exclusive()
            self.scan_changes(is_start=True)
            session = place.session
            process = table.start(
                lambda: launcher.launch([options.shell, "-c", command], directory=workdir),
                limits,
                new_id=lambda: session.next_id("p").rpartition("/")[2],
            )
            try:
                started = ProcessStarted(process.process_id, command, workdir, session.now(), place.filesystem_id)
                session.dispatch(started)
                is_nested = place.at_end(process.begin, lambda: table.discard(process))
            except BaseException:
                table.discard(process)
                raise
        return process, is_nested

    def scan_changes(self, *, is_start: bool = False) -> tuple[str, ...]:
        """Record what processes have changed since the last scan, and return the changed paths.

        The cause is the process, or all processes that may have made the changes. Scans the files if any process has
        run since.
        """
        with self._place.lock(), self.attribution() as cause:
            return self._place.scan_changes(cause) if cause is not None or is_start else ()

    @contextmanager
    def attribution(self) -> Iterator[str | None]:
        """Yield the cause of changes that a scan in this block finds, `None` if no process has run since the last scan.

        The caller must hold the lock, and records the changes.
        """
        suspects = self._table.suspects()
        # Processes that are still running may change files after the scan.
        ended = [process for process in suspects if process.state == "ended"]
        yield cause_of(suspects) if suspects else None
        if ended:
            # If the scan is rolled back, the next one must find the changes again.
            self._place.at_end(lambda: self._table.clear(ended), lambda: None)

    @property
    def cause(self) -> str | None:
        """The cause of changes that are found now; `None` if no process has run since the last scan."""
        suspects = self._table.suspects()
        return cause_of(suspects) if suspects else None

    def refuse_running(self, doing: str) -> None:
        """Raise `ProcessesRunning` if processes are running, for work that needs exclusive use of the files."""
        running = [process.process_id for process in self._table.running()]
        if running:
            raise fault(
                ProcessesRunning,
                errno.EAGAIN,
                f"cannot {doing}: {', '.join(running)} may change files at the same time, so a failure could not be "
                f"undone exactly; stop it with process_signal, or run the command with process_start and process_wait",
            )

    def end_all(self, reason: str) -> tuple[str, ...]:
        """Terminate all processes on the files, record their last changes and their ends, and return their ids."""
        place = self._place
        with place.lock():
            ended = self._table.end_all(reason)
            self.scan_changes()
            self.settle()
        return tuple(process.process_id for process in ended)

    def end_own(self, reason: str) -> None:
        """Terminate the processes that the session started, but not those that its parent also knows."""
        session = self._place.session
        parent = None if session._parent is None else session._parent()
        known = set() if parent is None else {started.process_id for started in self._started(parent)}
        own = {started.process_id for started in self._started(session)} - known
        if self._table.end_all(reason, own):
            self.scan_changes()
            self.settle()

    def settle(self) -> None:
        """Record the ends of processes that have ended since this was last called."""
        place = self._place
        with place.lock():
            session, live = place.session, self._table.processes
            ended = self._ended()
            for started in self._started(session):
                process = live.get(started.process_id)
                ending = None if process is None else process.ending
                if ending is not None and started.process_id not in ended:
                    session.dispatch(
                        ProcessEnded(
                            started.process_id, ending.exit_code, ending.reason, session.now(), place.filesystem_id
                        ),
                        cause=started.process_id,
                    )

    def get(self, process_id: str) -> BackgroundProcess:
        """Return a process of this runtime; raises `UnknownProcess`."""
        known = {started.process_id for started in self._started(self._place.session)}
        process = self._table.processes.get(process_id)
        if process is not None and process_id in known:
            return process
        if process_id in known:
            raise UnknownProcess(
                f"process {process_id!r} is no longer known: it ran in another runtime, or ended long ago; see "
                f"process_list"
            )
        raise UnknownProcess(f"there is no process {process_id!r}; see process_list")

    def infos(self) -> tuple[ProcessInfo, ...]:
        """List the processes that the session knows, in the order in which they were started."""
        live, ended = self._table.processes, self._ended()
        return tuple(self._info(one, live.get(one.process_id), ended) for one in self._started(self._place.session))

    def _info(
        self, started: ProcessStarted, process: BackgroundProcess | None, ended: dict[str, ProcessEnded]
    ) -> ProcessInfo:
        ending = ended.get(started.process_id) if process is None else process.ending
        state = process.state if process is not None else "lost" if ending is None else "ended"
        return ProcessInfo(
            started.process_id,
            started.command,
            started.workdir,
            started.at,
            state,
            None if ending is None else ending.exit_code,
            None if ending is None else ending.reason,
        )

    def _started(self, session: Session) -> list[ProcessStarted]:
        name = self._place.filesystem_id
        return [started for started in session[ProcessStarted].all() if started.filesystem == name]

    def _ended(self) -> dict[str, ProcessEnded]:
        place = self._place
        return {
            ended.process_id: ended
            for ended in place.session[ProcessEnded].all()
            if ended.filesystem == place.filesystem_id
        }


@runtime_checkable
class SupportsProcesses(Protocol):
    """A filesystem that supports background processes."""

    @property
    def background(self) -> BackgroundProcesses:
        """The processes that work on the files."""
        ...


def no_processes(filesystem: object) -> str:
    """Return the message for a filesystem that does not support processes."""
    return (
        f"cannot start a process on {a_type(filesystem)}: its files are not in a directory in which a "
        f"program could keep running; use a HostFilesystem or a ContainerFilesystem, or the tool shell for a command "
        f"that ends"
    )
