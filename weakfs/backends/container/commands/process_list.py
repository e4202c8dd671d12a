"""The processes in a container, as its /proc lists them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from weakfs.class_decorators import frozen
from weakfs.platforms import Opened
from weakfs.reducers.tree.name_escaping import from_bytes
from weakfs.snapshots.directory.entries import DIRECTORY, READ

# The environment variable that marks the processes of a command.
VARIABLE = "WEAKFS_COMMAND"

# How many times to list again because a process died, and may have left others, before the list is accepted.
GENERATIONS = 20

# The positions of the number of threads and the start time among the fields of /proc/PID/stat that follow the name.
THREADS, STARTED = 17, 19

# The maximum number of pauses in which a listing waits for `execve` to end, and the length of each in seconds: at least
# 10 s in all.
EXECUTING, PAUSE = 20_000, 0.0005

# How many times to look at a process before it is believed to have no environment variables.
BARE = 5


@frozen
class Listed:
    """A process, with its ids in the container. `mark` is the value of the variable that marks commands."""

    pid: int
    parent: int
    group: int
    mark: str


class ProcessList:
    """Lists the processes of the container whose first process has the id `pid` on the host.

    In an attached container (`only` is not empty), it lists only processes whose mark starts with `only`, and the
    processes that they started.
    """

    def __init__(self, pid: int, *, only: str) -> None:
        self._only = only
        # Processes, with their start times, for which a listing has waited in vain: they have hidden their arguments.
        self._hidden: set[tuple[str, bytes]] = set()
        self._proc = os.open(f"/proc/{pid}/root/proc", DIRECTORY)

    def close(self) -> None:
        """Close the list; afterwards it is empty."""
        descriptor, self._proc = self._proc, -1
        if descriptor >= 0:
            os.close(descriptor)

    def all(self, *, marked: bool = True) -> dict[int, Listed]:
        """List the processes by their ids, without the container's first one and those that have died.

        Their marks are left out unless they are asked for, or needed.
        """
        found: dict[int, Listed] = {}
        seen, new = {"1"}, set[str]()
        pauses = iter(range(EXECUTING))
        with suppress(OSError):
            # A process that died after it was listed may have started another one, which is not in the list.
            for _ in range(GENERATIONS):
                new = self._names() - seen
                found = {one.pid: one for name in new if (one := self._listed(name, pauses, marked=marked)) is not None}
                seen |= new
                if found or not new:
                    break
            else:
                # A program forks faster than its processes can be listed.
                found = {int(name): Listed(int(name), 0, 0, "") for name in new}
        return found if not self._only else started_by(found, self._only)

    def _names(self) -> set[str]:
        return {name for name in os.listdir(self._proc) if name.isdigit()} if self._proc >= 0 else set()

    def _listed(self, pid: str, pauses: Iterator[int], *, marked: bool) -> Listed | None:
        try:
            while True:
                fields = self._read(f"{pid}/stat").rpartition(b")")[2].split()
                # A process whose first thread has ended looks dead, although its other threads may be running.
                if fields[0] in (b"Z", b"X") and int(fields[THREADS]) <= 1:
                    return None
                mark = self._mark(pid) if marked or self._only else ""
                process = pid, fields[STARTED]
                if mark is None and process not in self._hidden:
                    if next(pauses, None) is not None:
                        time.sleep(PAUSE)
                        continue
                    self._hidden.add(process)
                return Listed(int(pid), int(fields[1]), int(fields[2]), mark or "")
        except (OSError, IndexError, ValueError):
            pass
        return None

    def _mark(self, pid: str) -> str | None:
        """Return the mark of a process, "" if it has none, and `None` while it is in `execve`.

        During `execve` it has a program, but neither arguments nor environment variables. This may take some time on a
        busy machine.
        """
        start = f"{VARIABLE}=".encode()
        for _ in range(BARE):
            with suppress(OSError):
                if variables := self._variables(pid):
                    found = [one for one in variables.split(b"\0") if one.startswith(start)]
                    return found[0][len(start) :].decode("utf-8", "replace") if found else ""
            if self._is_executing(pid):
                return None
            # The process may have come out of `execve` in between, or gone into another one.
            time.sleep(PAUSE)
        return ""

    def _is_executing(self, pid: str) -> bool:
        if self._read(f"{pid}/cmdline"):
            return False
        try:
            os.readlink(f"{pid}/exe", dir_fd=self._proc)
        except OSError:
            # A kernel thread, or a process that is dying.
            return False
        return True

    def _variables(self, pid: str) -> bytes:
        """Read the environment of a process. If its first thread has ended, read it from another thread."""
        try:
            return self._read(f"{pid}/environ")
        except ProcessLookupError:
            another = max(self._list(f"{pid}/task"), key=int)
            return self._read(f"{pid}/task/{another}/environ")

    def _list(self, path: str) -> list[str]:
        with Opened(os.open(path, DIRECTORY, dir_fd=self._proc)) as descriptor:
            return os.listdir(descriptor)

    def _read(self, path: str) -> bytes:
        descriptor = os.open(path, READ, dir_fd=self._proc)
        with open(descriptor, "rb") as file:
            return file.read()


def started_by(processes: Mapping[int, Listed], mark: str) -> dict[int, Listed]:
    """Return the processes whose mark starts with `mark`, and all processes below them.

    A process that clears its environment and leaves its parent is not found.
    """
    found = {pid: one for pid, one in processes.items() if one.mark.startswith(mark)}
    while more := {pid: one for pid, one in processes.items() if pid not in found and one.parent in found}:
        found |= more
    return found


def mount_points(pid: int) -> list[str]:
    """Return the canonical paths of the mount points that a process of this machine sees."""
    with open(f"/proc/{pid}/mountinfo", "rb") as lines:
        return [path_in(line) for line in lines]


def path_in(line: bytes) -> str:
    """Return the path in a line of /proc/PID/mountinfo, where blanks, line breaks and backslashes are octal numbers."""
    return from_bytes(re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), line.split(b" ")[4]))


def refers_to_lower(pid: int) -> bool:
    """Return whether the root of a process is an overlay whose upper layer may refer to lower layers."""
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        options = {option for line in lines if line.split()[4] == "/" for option in line.split()[-1].split(",")}
    return bool(options & {"metacopy=on", "redirect_dir=on"})


def topmost(points: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that are neither `/` nor below another of them."""
    found: list[str] = []
    for point in sorted(points):
        if point != "/" and not any(point.startswith(f"{one}/") for one in found):
            found.append(point)
    return tuple(found)


def owner_of(pid: int) -> tuple[int, int]:
    """Return the host's ids of the user and the group of a process of this machine."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as lines:
        found = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    return int(found["Uid"][0]), int(found["Gid"][0])
