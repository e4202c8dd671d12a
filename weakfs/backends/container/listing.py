"""The containers of all sessions on this machine: listing them, and removing those that are not in use."""

from __future__ import annotations

import os
from pathlib import Path

from weakfs.backends.container.container import CONTROL, NAME, SESSION
from weakfs.backends.container.monitors import remove_container
from weakfs.backends.container.podman import Inspected, Podman, inspect, labelled
from weakfs.class_decorators import frozen
from weakfs.platforms import fcntl
from weakfs.snapshots.directory.entries import DIRECTORY


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
    podman = podman or Podman()
    found = [_info(inspect(podman, one)) for one in labelled(podman, **{SESSION: session_id})]
    return tuple(sorted(found, key=lambda one: one.container))


def remove_unused(podman: Podman | None = None, *, session_id: str = "") -> tuple[str, ...]:
    """Remove the containers that no process uses, with their files, and return their names.

    Saved sessions are not affected: the next process that opens one creates its container again.
    """
    podman = podman or Podman()
    removed: list[str] = []
    for one in containers(podman, session_id=session_id):
        if not one.is_in_use:
            inspected = inspect(podman, one.container)
            remove_container(podman, inspected.container_id, inspected.labels.get(CONTROL, ""))
            removed.append(one.container)
    return tuple(removed)


def _info(inspected: Inspected) -> ContainerInfo:
    labels = inspected.labels
    return ContainerInfo(
        inspected.name,
        labels.get(SESSION, ""),
        labels.get(NAME, ""),
        inspected.image_id,
        inspected.is_running,
        _is_held(Path(labels.get(CONTROL, ""))),
    )


def _is_held(control: Path) -> bool:
    try:
        descriptor = os.open(control, DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
