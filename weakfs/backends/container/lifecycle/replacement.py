"""Replacing containers that Podman has lost: their monitor was killed before they ended, so they cannot be restarted.

Such a container is replaced with another one, which is created by the same command and gets its layer.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress

from weakfs.backends.container.lifecycle.podman import Inspected, Podman, PodmanError, inspect

# The suffix of the name of a container that is being replaced.
LOST = "-lost"


def is_lost(inspected: Inspected) -> bool:
    """Return whether Podman considers a container running, or being stopped, although its first process has ended."""
    return inspected.status in ("running", "stopping") and not _runs(inspected.pid)


def replace(podman: Podman, lost: Inspected) -> Inspected:
    """Replace a lost container, and return the one that now has its name and its layer; it has not been started yet."""
    podman.run("rename", lost.container_id, lost.name + LOST)
    podman.run(*lost.created_by)
    made = inspect(podman, lost.name)
    with suppress(PodmanError):
        podman.unmount(lost.container_id)
    there, here = _layer(podman, lost), _layer(podman, made)
    shutil.rmtree(here)
    os.rename(there, here)
    podman.remove(lost.container_id)
    return inspect(podman, made.container_id)


def settled(podman: Podman, found: Iterable[Inspected]) -> list[Inspected]:
    """Finish or undo an interrupted replacement of containers with the same labels, and return those that remain."""
    found = list(found)
    lost = next((one for one in found if one.name.endswith(LOST)), None)
    if lost is None:
        return found
    rest = [one for one in found if one is not lost]
    if not os.path.isdir(_layer(podman, lost)):
        podman.remove(lost.container_id)
        return rest
    for one in rest:
        # The layer of the replacement is still empty.
        podman.remove(one.container_id)
    podman.run("rename", lost.container_id, lost.name.removesuffix(LOST))
    return [inspect(podman, lost.container_id)]


def _layer(podman: Podman, inspected: Inspected) -> str:
    return inspected.upper or podman.run("mount", inspected.container_id).decode().strip()


def _runs(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as status:
            return status.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False
