"""Opening containers: finding or creating the container of a session, and attaching to an existing container."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from contextlib import suppress
from errno import EBUSY, EINVAL
from hashlib import sha256
from time import monotonic

from weakfs.backends.container.commands import supervisor as supervision
from weakfs.backends.container.lifecycle.conmon import end_calls, remove_container, wait_for_calls
from weakfs.backends.container.lifecycle.container import Container, is_filled, mark_of
from weakfs.backends.container.lifecycle.listing import CONTROL, NAME, SESSION, hold, name_prefix, of_sessions
from weakfs.backends.container.lifecycle.options import ContainerOptions
from weakfs.backends.container.lifecycle.podman import Inspected, Podman, PodmanError, find_image, inspect, inspect_all
from weakfs.backends.container.lifecycle.replacement import LOST, settled
from weakfs.errors import fault
from weakfs.platforms import Opened, fcntl
from weakfs.snapshots.directory.entries import DIRECTORY

# How long to wait for another process that finds or creates a container, and how often to check, in seconds. Each of
# its calls to Podman may take five minutes.
PATIENCE, PAUSE = 900.0, 0.01

# The maximum number of attempts, in case another process takes the name first.
ATTEMPTS = 3

# The message of Podman and Docker that a name is taken, with the id of the container.
TAKEN = re.compile(r'already in use by (?:container )?"?([0-9a-f]{64})')

# The path in a container of the directory through which its supervisor is reached.
INSIDE = "/run/weakfs"


def open_container(
    podman: Podman, options: ContainerOptions, *, session_id: str, name: str, state: str
) -> tuple[Container, bool]:
    """Find the container of a session, or create it; return whether it is new. It has not been started yet.

    Raises `OSError` (EBUSY) while another process uses it.
    """
    os.makedirs(state, mode=0o700, exist_ok=True)
    # If two processes open one session at once, one waits here. If their stores differ, Podman refuses one of them.
    with Opened(os.open(state, DIRECTORY)) as alone:
        _lock(alone, name)
        for attempt in range(1, ATTEMPTS + 1):
            found = _find(podman, session_id=session_id, name=name)
            if found is not None:
                return found, False
            try:
                return _create(podman, options, session_id=session_id, name=name, state=state), True
            except PodmanError as error:
                taken = TAKEN.search(str(error))
                if taken is None or attempt == ATTEMPTS:
                    raise
                _remove_half_created(podman, taken[1], _name_in_podman(session_id, name))
        raise AssertionError("the last attempt returns or raises")


def _lock(directory: int, name: str) -> None:
    until = monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if monotonic() > until:
                raise fault(
                    OSError,
                    EBUSY,
                    f"cannot open the container {name!r}: another process has been opening a container with the same "
                    f"store for {PATIENCE:g} s; stop that process, or try again",
                ) from None
        time.sleep(PAUSE)


def _name_in_podman(session_id: str, name: str) -> str:
    """Return the name of a session's container in Podman, which is the same in every process and unique there."""
    return name_prefix(session_id) + sha256(f"{session_id}\0{name}".encode()).hexdigest()[:16]


def _remove_half_created(podman: Podman, container_id: str, name: str) -> None:
    """Free a name that is taken by a container whose creation was killed before Podman knew of it."""
    wait_for_calls(podman, [name])
    if not inspect_all(podman, [container_id]):
        with suppress(PodmanError):
            podman.remove(container_id)


def _create(podman: Podman, options: ContainerOptions, *, session_id: str, name: str, state: str) -> Container:
    """Create a container for a session, with its control directory in `state`."""
    find_image(podman, options.image)
    own = _name_in_podman(session_id, name)
    control = os.path.join(state, f"{own}-{secrets.token_hex(4)}")
    supervision.make_control(control, None)
    held = hold(control, own)
    labels = {SESSION: session_id, NAME: name, CONTROL: control}
    try:
        podman.run(
            *("create", "--pull", "never", "--name", own, "--hostname", "weakfs"),
            *(word for label, value in labels.items() for word in ("--label", f"{label}={value}")),
            *options.words(),
            *podman.creation,
            *("--mount", _mount_of(control), "--workdir", "/", "--entrypoint", "", "--", options.image),
            *("/bin/sh", "-c", supervision.script(), "sh", INSIDE, mark_of(control)),
        )
        return Container(podman, own, control, held, is_own=True)
    except BaseException:
        # The container may have been created nevertheless. If not, the name may belong to another process's container.
        with suppress(OSError):
            if inspect(podman, own).labels.get(CONTROL) == control:
                remove_container(podman, own, control)
        shutil.rmtree(control, ignore_errors=True)
        os.close(held)
        raise


def _find(podman: Podman, *, session_id: str, name: str) -> Container | None:
    """Find the container that an earlier process made for a session; `None` if there is none."""
    found = _containers_of(podman, session_id, name)
    for control in sorted({one.labels.get(CONTROL, "") for one in found}):
        same = [one for one in found if one.labels.get(CONTROL, "") == control]
        if not os.path.isdir(control):
            # Podman was killed while it created the container.
            for one in same:
                remove_container(podman, one.container_id, control)
            continue
        held = hold(control, same[0].name)
        try:
            end_calls(podman, (name for one in same for name in (one.container_id, one.name.removesuffix(LOST))))
            # Another process may have replaced the container before it was held.
            now = [one for one in _containers_of(podman, session_id, name) if one.labels.get(CONTROL, "") == control]
            for one in settled(podman, now):
                if is_filled(control):
                    return Container(podman, one.container_id, control, held, is_own=True)
                # The process that created the container was killed before the container had its initial files.
                remove_container(podman, one.container_id, control)
        except BaseException:
            os.close(held)
            raise
        os.close(held)
    return None


def _containers_of(podman: Podman, session_id: str, name: str) -> list[Inspected]:
    return [one for one in of_sessions(podman, session_id=session_id) if one.labels.get(NAME) == name]


def attach(podman: Podman, name: str, *, state: str) -> Container:
    """Attach to an existing container, which must be running."""
    inspected = inspect(podman, name)
    if not inspected.is_running:
        raise fault(
            OSError,
            EINVAL,
            f"cannot attach to the container {name!r}: it is not running; start it with "
            f"'{podman.program} start {name}'",
        )
    control = os.path.join(state, inspected.container_id[:16])
    os.makedirs(control, mode=0o700, exist_ok=True)
    held = hold(control, name)
    try:
        return Container(podman, name, control, held, is_own=False)
    except BaseException:
        os.close(held)
        raise


def _mount_of(control: str) -> str:
    """Return the mount of a control directory, for an option that is read as comma-separated values."""
    source = control.replace('"', '""')
    return f'type=bind,"source={source}",target={INSIDE},readonly'
