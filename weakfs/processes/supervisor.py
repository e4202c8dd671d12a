"""Run one command, and make sure that none of its processes outlives the call.

A script that uses only the standard library: `python -I -S supervisor.py STATUS_FD`. The first line of its standard
input is the job. A held job waits for the line "begin". Later lines are numbers of signals for the command's process
group; an empty line or SIGTERM terminates the command, and "kill" does so without a grace period. So does the end of
the input: it means that the runtime has died, and the next one may be about to undo the changes of the command. Events
are reported on STATUS_FD as JSON, one per line; bubblewrap reports others there.

On Linux the script adopts every process that the command leaves behind, including those that started their own session,
and exits only when they are gone. It cannot stop work that the command delegated to another program, such as a service
manager or a container engine. On other systems only the command's process group is killed.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# The interval between searches for orphans, in seconds.
_PAUSE = 0.02

# The interval between counts of a sandbox's processes, in seconds. A fork bomb creates thousands in a second.
_COUNTING = 0.02

_STOPPING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def main() -> None:
    """Run the job given on standard input."""
    status = int(sys.argv[1])
    os.set_inheritable(status, False)
    control = _Control()
    line = control.wait_for_line()
    if line is None:
        return
    job: dict[str, object] = json.loads(line)
    if job["held"] and control.wait_for_line() != b"begin":
        return
    woken, waking = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *_STOPPING):
        signal.signal(number, _woken)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = _start(job, status)
    if isinstance(job["stdin"], int):
        # Only the command may hold its input open for reading, so that a writer notices when the command has ended.
        os.close(job["stdin"])
    # The command's output ends when the command closes it, not when this process does.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    most = job["max_processes"]
    census = _Census(child, most, status) if isinstance(most, int) else None
    code, abandoned = _wait_for(child, woken, control, census, is_sandbox=bool(job["reports_status"]))
    if code is not None:
        _tell(status, {"ended": code})
    left = _end_all(child, woken, 0.0 if abandoned else _seconds(job["grace"]), _seconds(job["killing"]))
    if left:
        _tell(status, {"left": left})


class _Control:
    """The lines on standard input, read without Python's buffer, which `select` does not know about."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.has_ended = False
        self._rest = b""

    def read(self) -> None:
        """Read the available input, waiting if there is none."""
        data = os.read(0, 1 << 16)
        self.has_ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        self.lines += lines

    def wait_for_line(self) -> bytes | None:
        """Return the next line, or `None` if the input ended instead."""
        while not self.lines and not self.has_ended:
            self.read()
        return self.lines.pop(0) if self.lines else None


def _woken(number: int, frame: FrameType | None) -> None:
    """Handle a signal by doing nothing; its arrival is read from the pipe."""


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        zero = ctypes.c_ulong(0)
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), zero, zero, zero)


def _tell(status: int, message: dict[str, object]) -> None:
    # The reader may be gone.
    with suppress(OSError):
        # A killed bubblewrap may have left a partial line.
        os.write(status, b"\n" + json.dumps(message).encode() + b"\n")


def _start(job: dict[str, object], status: int) -> int:
    """Start the command in its own session. A text in the job stands for bytes, one per character."""
    arguments = [word.encode("latin-1") for word in _texts(job["arguments"])]
    environment = [pair.encode("latin-1").partition(b"=") for pair in _texts(job["environment"])]
    directory = str(job["directory"]).encode("latin-1")
    executed, executing = os.pipe()
    child = os.fork()
    if child:
        # A signal that arrived before the program is executed would be lost.
        os.close(executing)
        os.read(executed, 1)
        os.close(executed)
        return child
    try:
        os.setsid()
        # Reported by the child, because bubblewrap writes to the same pipe, and in pieces.
        _tell(status, {"started": os.getpid()})
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        limits = job["resources"] if isinstance(job["resources"], dict) else {}
        # A signal that is ignored by Python or by its parent would stay ignored in the program. With a limit on file
        # size that is intended: a program then reports "File too large" instead of being killed silently.
        for number in signal.valid_signals():
            if signal.getsignal(number) is signal.SIG_IGN and (
                number != signal.SIGXFSZ or "RLIMIT_FSIZE" not in limits
            ):
                signal.signal(number, signal.SIG_DFL)
        for name, value in limits.items():
            _set_limit(getattr(resource, name), value)
        given = job["stdin"] if isinstance(job["stdin"], int) else os.open(os.devnull, os.O_RDONLY)
        os.dup2(given, 0)
        os.close(given)
        os.chdir(directory)
        os.set_inheritable(status, bool(job["reports_status"]))
        os.execve(arguments[0], arguments, {name: value for name, _, value in environment})
    except BaseException as error:
        _tell(status, {"failed": getattr(error, "strerror", None) or str(error), "errno": getattr(error, "errno", 0)})
    os._exit(127)


def _set_limit(number: int, value: int) -> None:
    """Lower a limit to `value`; leave it alone if it is already lower."""
    soft, hard = (value if old == resource.RLIM_INFINITY else min(old, value) for old in resource.getrlimit(number))
    # A process can catch the signal for the soft limit on CPU time, but not the one for the hard limit.
    if number == resource.RLIMIT_CPU and hard == value != resource.getrlimit(number)[1]:
        hard += 1
    resource.setrlimit(number, (soft, hard))


class _Census:
    """Counts the processes in a sandbox, and kills it if there are too many.

    RLIMIT_NPROC does that as well, but not for root, and on Linux before 5.14 not per user namespace.
    """

    def __init__(self, child: int, most: int, status: int) -> None:
        self._child = child
        self._most = most
        self._status = status
        self._proc = -1

    def take(self) -> None:
        """Count once."""
        if self._proc < 0:
            self._proc = self._open()
        if self._proc >= 0:
            # A sandbox that has just ended has no /proc to list.
            with suppress(OSError):
                if sum(name.isdigit() for name in os.listdir(self._proc)) > self._most:
                    _tell(self._status, {"exceeded": "max_processes"})
                    # Killing bubblewrap ends the first process of the sandbox, and with it all others.
                    os.kill(self._child, signal.SIGKILL)

    def _open(self) -> int:
        """Open the sandbox's own /proc, which lists its processes only; -1 if it is not mounted yet."""
        for pid in _children(self._child):
            with suppress(OSError):
                found = os.open(f"/proc/{pid}/root/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    # In the /proc of this process's own namespace, `self` exists.
                    os.readlink("self", dir_fd=found)
                except FileNotFoundError:
                    return found
                os.close(found)
        return -1


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _seconds(value: object) -> float:
    return value if isinstance(value, float) else 0.0


def _wait_for(
    child: int, woken: int, control: _Control, census: _Census | None, *, is_sandbox: bool
) -> tuple[int | None, bool]:
    """Wait for the command to end and return its exit code as a shell would; `None` if it must be killed.

    The second value is true if it gets no grace period, for instance because nothing waits for it any more.
    """
    signals: list[int] = []
    while True:
        patience = 0 if control.lines else _COUNTING if census is not None or signals else None
        ready, _, _ = select.select([0, woken], [], [], patience)
        if census is not None:
            census.take()
        numbers = os.read(woken, 4096) if woken in ready else b""
        for pid, state in _reaped():
            if pid == child:
                code = os.waitstatus_to_exitcode(state)
                return code if code >= 0 else 128 - code, False
        if _STOPPING.intersection(numbers):
            return None, False
        if 0 in ready:
            control.read()
        while control.lines:
            line = control.lines.pop(0)
            if not line or line == b"kill":
                return None, bool(line)
            signals.append(int(line))
        groups = _groups(child, is_sandbox=is_sandbox) if signals else []
        if groups:
            for group, number in itertools.product(groups, signals):
                _signal_group(group, number)
            signals.clear()
        if control.has_ended:
            return None, True


def _groups(child: int, *, is_sandbox: bool) -> list[int]:
    """Return the process group of the command; empty as long as the sandbox has not started it.

    In a sandbox, it is the group of the first process, which itself ignores signals.
    """
    return [first for first in _children(child) if _children(first)] if is_sandbox else [child]


def _reaped() -> Iterator[tuple[int, int]]:
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def _all_gone(child: int) -> bool:
    """Reap ended processes; return whether no child and no member of the command's group is left."""
    for _ in _reaped():
        pass
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return not _signal_group(child, 0)
    return False


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; return whether the group exists."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def _children(parent: int) -> list[int]:
    """List the children of a process, including adopted ones. Our own cannot vanish before they are waited for."""
    own = str(parent)
    found: list[int] = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The program's name is in parentheses and may itself contain parentheses.
                if file.read().rpartition(b")")[2].split()[1] == own.encode():
                    found.append(int(name))
    return found


def _end_all(child: int, woken: int, grace: float, killing: float) -> int:
    """Terminate every remaining process, with SIGTERM and then SIGKILL; return how many could not be killed."""
    asked: set[int] = set()
    until = time.monotonic() + grace
    # The time is counted from the first SIGKILL, since this process itself may not have run for a while.
    last: float | None = None
    while not _all_gone(child):
        now = time.monotonic()
        if now >= until and last is None:
            last = now + killing
        if last is not None and now >= last:
            return max(len(_children(os.getpid())), 1)
        number = signal.SIGKILL if now >= until else signal.SIGTERM
        # Processes adopted since get SIGTERM too; the group as a whole gets SIGTERM once, and SIGKILL until it is gone.
        if number == signal.SIGKILL or not asked:
            _signal_group(child, number)
        for pid in _children(os.getpid()):
            if number == signal.SIGKILL or pid not in asked:
                with suppress(OSError):
                    os.kill(pid, number)
            asked.add(pid)
        asked.add(child)
        select.select([woken], [], [], _PAUSE)
        with suppress(BlockingIOError):
            os.read(woken, 4096)
    return 0


if __name__ == "__main__":
    main()
