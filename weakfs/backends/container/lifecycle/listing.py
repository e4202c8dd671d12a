"""The containers of all sessions on this machine: finding, listing, and removing those that are not in use.

A process that uses, creates or removes a container holds a lock on the container's control directory.
"""

from __future__ import annotations

import os
import time
from errno import EBUSY
from hashlib import sha256

from weakfs.backends.container.lifecycle.conmon import end_calls, remove_container
from weakfs.backends.container.lifecycle.podman import Inspected, Podman, inspect_all, labelled
from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.platforms import fcntl
from weakfs.snapshots.directory.entries import DIRECTORY

# Checking whether a container is in use holds its lock for a moment, or for longer on a busy machine. How many times to
# try, and the pause in seconds.
LOOKING, PAUSE = 200, 0.005

# The labels of a container: its session and its name in it, and the control directory.
SESSION, NAME, CONTROL = "weakfs.session", "weakfs.name", "weakfs.control"


def name_prefix(session_id: str) -> str:
    """Return the prefix of the names that a session's containers have in Podman."""
    return f"weakfs-{sha256(session_id.encode()).hexdigest()[:8]}-"


def of_sessions(podman: Podman, *, session_id: str = "") -> list[Inspected]:
    """Return the containers that were made for sessions, or for one session.

    Labels are compared here, because Podman's filters do not accept a comma in a value.
    """
    found = inspect_all(podman, labelled(podman, SESSION, name=name_prefix(session_id) if session_id else ""))
    return [one for one in found if not session_id or one.labels.get(SESSION) == session_id]


def hold(control: str, name: str) -> int:
    """Open the control directory of a container, which belongs to this process until it is closed.

    Raises `OSError` (EBUSY) if it belongs to another process.
    """
    for _ in range(LOOKING):
        descriptor = try_to_hold(control)
        if descriptor is not None:
            return descriptor
        time.sleep(PAUSE)
    raise fault(
        OSError,
        EBUSY,
        f"cannot use the container {name!r}: another process uses it for the same session; stop that process, or give "
        f"this one another session or name",
    )


def try_to_hold(control: str) -> int | None:
    """Open the control directory as `hold` does; return `None` if it belongs to another process."""
    descriptor = os.open(control, DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@frozen
class ContainerInfo:
    """A container of a session. `is_in_use` is true while a process uses it."""

    container: str
    session_id: str
    name: str
    image_id: str
    is_running: bool
    is_in_use: bool


def containers(podman: Podman | None = None, *, session_id: str = "") -> tuple[ContainerInfo, ...]:
    """List the containers that were made for sessions, or for one session, by name."""
    found = map(_info, of_sessions(podman or Podman(), session_id=session_id))
    return tuple(sorted(found, key=lambda one: one.container))


def remove_unused(podman: Podman | None = None, *, session_id: str = "") -> tuple[str, ...]:
    """Remove the containers that no process uses, with their files, and return their names.

    Saved sessions are not affected: the next process that opens one creates its container again.
    """
    podman = podman or Podman()
    removed: list[str] = []
    for one in sorted(of_sessions(podman, session_id=session_id), key=lambda one: one.name):
        control = one.labels.get(CONTROL, "")
        try:
            held = try_to_hold(control)
            if held is None:
                continue
        except FileNotFoundError:
            # No process can use a container without its control directory.
            held = -1
        try:
            end_calls(podman, (one.container_id, one.name))
            remove_container(podman, one.container_id, control)
        finally:
            if held >= 0:
                os.close(held)
        removed.append(one.name)
    return tuple(removed)


def _info(inspected: Inspected) -> ContainerInfo:
    labels = inspected.labels
    return ContainerInfo(
        inspected.name,
        labels.get(SESSION, ""),
        labels.get(NAME, ""),
        inspected.image_id,
        inspected.is_running,
        _is_held(labels.get(CONTROL, "")),
    )


def _is_held(control: str) -> bool:
    try:
        held = try_to_hold(control)
    except FileNotFoundError:
        return False
    if held is not None:
        os.close(held)
    return held is None
