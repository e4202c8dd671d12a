"""Monitors: Podman's conmon processes, each of which watches over one container and records its end.

If Podman is killed while it starts a container, it may leave a monitor that it does not know of, with a container
waiting to be started. If the process that called Podman is killed, the call continues.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from errno import EBUSY
from itertools import pairwise
from time import monotonic

from weakfs.backends.container.lifecycle.podman import (
    AT_ONCE,
    ContainerNotFound,
    Inspected,
    Podman,
    PodmanError,
    inspect,
)
from weakfs.errors import fault

MONITOR = b"conmon"

# The Podman commands that change a container, except for `cleanup`, which Podman runs itself.
CHANGES = {b"commit", b"create", b"mount", b"rename", b"rm", b"start", b"stop", b"umount"}

# How long a monitor may take to record the end of its container, and how often to check, in seconds.
ENDING, PAUSE = 10.0, 0.002


def monitors_of(container_id: str) -> list[int]:
    """Return the processes that watch over a container, given its full id."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _watches(int(name), container_id)]


def end_monitors(container_id: str) -> bool:
    """Kill the processes that run, or wait to be started, under the monitors of a container, and wait for the monitors.

    Returns whether there were any monitors. A monitor that does not end by itself is killed. Raises `PodmanError`
    (EBUSY) if one cannot be killed.
    """
    any_found = False
    until = monotonic() + ENDING
    killed_at: float | None = None
    # When a monitor starts, it forks, and the process that was found here exits.
    while found := monitors_of(container_id):
        any_found = True
        if killed_at is not None and monotonic() > killed_at + ENDING:
            raise fault(
                PodmanError,
                EBUSY,
                f"cannot stop the container {container_id[:12]!r}: its monitor, process {found[0]}, cannot be killed; "
                f"check what that process waits for",
            )
        for pid in found:
            for child in _containers_under(pid):
                _kill(child)
            if monotonic() > until and _watches(pid, container_id):
                _kill(pid)
                killed_at = monotonic() if killed_at is None else killed_at
        time.sleep(PAUSE)
    return any_found


def end_calls(podman: Podman, names: Iterable[str]) -> None:
    """Kill orphaned Podman calls that change containers with these ids or names.

    The processes that made them are gone. A start, for example, would make an empty layer for a container whose layer
    was moved away in the meantime.
    """
    wanted, program = {name.encode() for name in names}, os.path.basename(podman.program).encode()
    until = monotonic() + ENDING
    while found := _calls(program, wanted):
        for pid in found:
            _kill(pid)
        if monotonic() > until:
            return
        time.sleep(PAUSE)


def wait_for_calls(podman: Podman, names: Iterable[str]) -> None:
    """Wait, for a limited time, until no Podman call changes containers with these ids or names."""
    wanted, program = {name.encode() for name in names}, os.path.basename(podman.program).encode()
    until = monotonic() + ENDING
    while _calls(program, wanted) and monotonic() < until:
        time.sleep(PAUSE)


def _calls(program: bytes, names: set[bytes]) -> list[int]:
    found: list[int] = []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        words = command_of(pid)
        if names.intersection(words) and CHANGES.intersection(words) and program in map(os.path.basename, words):
            found.append(pid)
    return found


def end(podman: Podman, found: Inspected, mark: str) -> Inspected:
    """Kill the processes that an earlier user left in a container; its first process has `mark` in its command line."""
    ended = end_monitors(found.container_id)
    if found.status not in ("running", "stopping"):
        return inspect(podman, found.container_id) if ended else found
    if not found.monitor:
        podman.run("stop", *AT_ONCE, found.container_id)
    until = monotonic() + ENDING
    while found.monitor and mark.encode() in command_of(found.pid) and monotonic() < until:
        # The container's monitor was killed.
        _kill(found.pid)
        time.sleep(PAUSE)
    return inspect(podman, found.container_id)


def remove_container(podman: Podman, container_id: str, control: str) -> None:
    """Remove a container with everything that belongs to it."""
    end_monitors(container_id)
    with suppress(PodmanError):
        podman.remove(container_id)
    with suppress(ContainerNotFound):
        inspect(podman, container_id)
        raise fault(
            PodmanError,
            EBUSY,
            f"cannot remove the container {container_id[:12]!r}: it still exists; remove it with podman rm --force",
        )
    shutil.rmtree(control, ignore_errors=True)


def has_monitor(inspected: Inspected) -> bool:
    """Return whether the monitor of a container is alive, if it has one. Another process may get its id later."""
    return not inspected.monitor or _watches(inspected.monitor, inspected.container_id)


def command_of(pid: int) -> list[bytes]:
    """Return the words of a process's command line; none if it has ended."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().split(b"\0")[:-1]
    return []


def _watches(pid: int, container_id: str) -> bool:
    words = command_of(pid)
    return bool(words) and os.path.basename(words[0]) == MONITOR and (b"-c", container_id.encode()) in _pairs(words)


def _containers_under(monitor: int) -> list[int]:
    """Return the processes that a monitor started, except for the program that it calls after its container ended."""
    words = command_of(monitor)
    own = {words[0], *(value for name, value in _pairs(words) if name == b"--exit-command")} if words else set[bytes]()
    with suppress(OSError), open(f"/proc/{monitor}/task/{monitor}/children", "rb") as file:
        return [int(child) for child in file.read().split() if not own.intersection(command_of(int(child))[:1])]
    return []


def _pairs(words: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(pairwise(words))


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
