"""Starting the first process of a container, its supervisor, even if a command has removed files that it needs."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from errno import EINVAL, ENOENT
from time import monotonic

from weakfs.backends.container.commands import supervisor as supervision
from weakfs.backends.container.commands.command_files import is_readable
from weakfs.backends.container.layers import kept_layer
from weakfs.backends.container.lifecycle.conmon import end, end_calls
from weakfs.backends.container.lifecycle.podman import Inspected, Podman, PodmanError, inspect
from weakfs.backends.container.lifecycle.replacement import is_lost
from weakfs.errors import fault
from weakfs.platforms import Opened

PAUSE = 0.002


def put_back_layer(podman: Podman, found: Inspected) -> None:
    """Put back the layer that was set aside when an earlier process started the container; it must not be running."""
    if found.upper is not None and kept_layer.is_kept(found.upper):
        with suppress(PodmanError):
            podman.unmount(found.container_id)
        kept_layer.put_back(found.upper)


def start(podman: Podman, found: Inspected, control: int, mark: str, *, has_started: bool) -> Inspected:
    """Start a container.

    Its supervisor is reached through the open directory `control`, and has `mark` among the words of its command line.
    If the container does not start although it did before (`has_started`), its layer is set aside and it is started
    over its image alone. Raises `PodmanError`.
    """
    if found.upper is not None and not os.path.isdir(found.upper):
        # Podman would make an empty directory.
        raise fault(
            PodmanError,
            ENOENT,
            f"cannot start the container {found.name!r}: its files are no longer in {found.upper!r}; open its session "
            f"again",
        )
    try:
        return _start(podman, found, control)
    except PodmanError:
        found = _cleared(podman, found, mark)
    try:
        return _start(podman, found, control)
    except PodmanError:
        found = _cleared(podman, found, mark)
        if found.upper is None or not has_started or is_lost(found):
            raise
        kept_layer.set_aside(found.upper)
        try:
            return _start(podman, found, control)
        except BaseException:
            try:
                found = _cleared(podman, found, mark)
            finally:
                put_back_layer(podman, found)
            raise


def _cleared(podman: Podman, found: Inspected, mark: str) -> Inspected:
    """Kill the processes that a failed start has left, and return the new status of the container.

    A start may continue although its call was killed. Its container would then run with a layer that is set aside.
    """
    end_calls(podman, (found.container_id,))
    found = end(podman, inspect(podman, found.container_id), mark)
    # Without a monitor, Podman may believe that the files are mounted although they are not.
    podman.unmount(found.container_id)
    return found


def _start(podman: Podman, found: Inspected, control: int) -> Inspected:
    podman.run("start", found.container_id)
    started = inspect(podman, found.container_id)
    if not _is_up(started.pid, control):
        raise ended_immediately(podman, found.name)
    return started


def ended_immediately(podman: Podman, name: str, number: int = EINVAL) -> PodmanError:
    """Return the error for a container whose first process ended when it was started."""
    return fault(
        PodmanError,
        number,
        f"cannot start the container {name!r}: its first process ended immediately; the image needs a /bin/sh, and "
        f"'{podman.program} logs {name}' may say more",
    )


def _is_up(pid: int, control: int) -> bool:
    """Wait until a supervisor reads its requests; return whether it does, or at least runs."""
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return False
    with Opened(process):
        until = monotonic() + supervision.STARTING
        while not supervision.is_read(control) and monotonic() < until:
            if is_readable(process):
                return False
            time.sleep(PAUSE)
        return not is_readable(process)
