"""Run one command, and let nothing of it outlive the call.

A script of its own, which knows the standard library only: `python -I -S supervisor.py STATUS_FD`. The first line
of its standard input is the job. A second line or SIGTERM ends the command. So does the end of that input, and then
without grace: the runtime has died, and the next one may be about to undo what the command did. What happens is
told as JSON, a line each, on STATUS_FD; a command that is bubblewrap tells of more there.

On Linux it adopts every process that the command leaves behind, those that made a session of their own among
them, and is gone itself only when they are. What cannot be caught: work that the command had another program do,
such as a service manager or a container engine. Elsewhere the command's process group is all that is ended.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

# How often orphans are looked for, in seconds.
_PAUSE = 0.02

_STOPPING = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def main() -> None:
    """Do the job that standard input names."""
    status = int(sys.argv[1])
    os.set_inheritable(status, False)
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return
    job: dict[str, object] = json.loads(line)
    woken, waking = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *_STOPPING):
        signal.signal(number, _woken)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    child = _start(job, status)
    # The command's output ends when the command lets go of it, not when this process does.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    code, abandoned = _wait_for(child, woken)
    if code is not None:
        _tell(status, {"ended": code})
    left = _end_all(child, woken, 0.0 if abandoned else _seconds(job["grace"]), _seconds(job["killing"]))
    if left:
        _tell(status, {"left": left})


def _woken(number: int, frame: FrameType | None) -> None:
    """Take a signal; that it came is read from the pipe."""


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        zero = ctypes.c_ulong(0)
        ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), zero, zero, zero)


def _tell(status: int, message: dict[str, object]) -> None:
    # Nobody may be listening any more.
    with suppress(OSError):
        # A bubblewrap that was killed may have left half a line.
        os.write(status, b"\n" + json.dumps(message).encode() + b"\n")


def _start(job: dict[str, object], status: int) -> int:
    """Start the command in a session of its own. Texts of the job are bytes, one a character."""
    arguments = [word.encode("latin-1") for word in _texts(job["arguments"])]
    environment = [pair.encode("latin-1").partition(b"=") for pair in _texts(job["environment"])]
    directory = str(job["directory"]).encode("latin-1")
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        # Told from here, since bubblewrap writes to the same pipe, and in pieces.
        _tell(status, {"started": os.getpid()})
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # Python ignores these, and what is ignored stays so in the program.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(directory)
        os.set_inheritable(status, bool(job["tells"]))
        os.execve(arguments[0], arguments, {name: value for name, _, value in environment})
    except BaseException as error:
        _tell(status, {"failed": getattr(error, "strerror", None) or str(error), "errno": getattr(error, "errno", 0)})
    os._exit(127)


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def _seconds(value: object) -> float:
    return value if isinstance(value, float) else 0.0


def _wait_for(child: int, woken: int) -> tuple[int | None, bool]:
    """Wait for the command's end and give its exit code, as a shell counts it; `None` when it is to be ended.

    The second value tells whether it is to be ended because nobody waits for it any more.
    """
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        numbers = os.read(woken, 4096) if woken in ready else b""
        for pid, state in _reaped():
            if pid == child:
                code = os.waitstatus_to_exitcode(state)
                return code if code >= 0 else 128 - code, False
        if _STOPPING.intersection(numbers):
            return None, False
        if 0 in ready:
            return None, not os.read(0, 1)


def _reaped() -> Iterator[tuple[int, int]]:
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def _all_gone(child: int) -> bool:
    """Reap what has ended, and tell whether neither a child nor a member of the command's group is left."""
    for _ in _reaped():
        pass
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return not _signal_group(child, 0)
    return False


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; tells whether there is one."""
    try:
        os.killpg(group, number)
    except OSError:
        return False
    return True


def _children() -> list[int]:
    """List this process's own children, adopted ones too. They cannot vanish before they are waited for."""
    own = str(os.getpid())
    found: list[int] = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # The program's name is in parentheses and may hold any others.
                if file.read().rpartition(b")")[2].split()[1] == own.encode():
                    found.append(int(name))
    return found


def _end_all(child: int, woken: int, grace: float, killing: float) -> int:
    """End every process that is left: asked first, then killed. Gives how many could not be."""
    asked: set[int] = set()
    until = time.monotonic() + grace
    while not _all_gone(child):
        now = time.monotonic()
        if now >= until + killing:
            return max(len(_children()), 1)
        number = signal.SIGKILL if now >= until else signal.SIGTERM
        # Whoever was adopted since is asked as well; the group as a whole is asked once, killed until it is gone.
        if number == signal.SIGKILL or not asked:
            _signal_group(child, number)
        for pid in _children():
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
