"""The life cycle of a container: it is created or found, started when it is needed, stopped and removed."""

from __future__ import annotations

import logging
import os
import signal
import weakref
from collections.abc import Callable
from contextlib import suppress
from errno import EINVAL, ENOENT
from functools import cached_property, partial
from hashlib import sha256
from threading import RLock
from time import monotonic, sleep
from weakref import WeakSet

from weakfs.backends.container.commands import supervisor as supervision
from weakfs.backends.container.commands.command_files import is_readable
from weakfs.backends.container.commands.process_list import mount_points, owner_of, refers_to_lower, topmost
from weakfs.backends.container.commands.supervisor import KILLING, PAUSE, Supervisor
from weakfs.backends.container.layers import kept_layer
from weakfs.backends.container.layers.image_files import ImageFiles
from weakfs.backends.container.layers.layer_size import LayerSize
from weakfs.backends.container.lifecycle.conmon import end, has_monitor, remove_container
from weakfs.backends.container.lifecycle.first_process import ended_immediately, put_back_layer, start
from weakfs.backends.container.lifecycle.idle import AGAIN, IDLENESS, User
from weakfs.backends.container.lifecycle.listing import CONTROL, SESSION, of_sessions
from weakfs.backends.container.lifecycle.options import IDLE_AFTER, MAX_LAYER_SIZE
from weakfs.backends.container.lifecycle.podman import (
    AT_ONCE,
    ContainerNotFound,
    Image,
    Inspected,
    Podman,
    find_image,
    inspect,
)
from weakfs.backends.container.lifecycle.replacement import is_lost, replace, settled
from weakfs.errors import fault
from weakfs.platforms import Opened
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.entries import DIRECTORY
from weakfs.snapshots.directory.entries import remove as remove_entry

logger = logging.getLogger("weakfs.backends")

# The name of the control directory in the root of an attached container.
BESIDE = ".weakfs"

# This file in the control directory marks a container that holds its initial files.
FILLED = "filled"


class Container:
    """A container that this process uses; no other process may use it at the same time.

    `close` releases it, `stop` kills its processes and keeps its files, `remove` removes it.
    """

    def __init__(self, podman: Podman, container_id: str, control: str, held: int, *, is_own: bool) -> None:
        inspected = inspect(podman, container_id)
        self.podman = podman
        self.container_id = inspected.container_id
        self.name = inspected.name
        self.is_own = is_own
        self.image_id = inspected.image_id
        self._path = control
        self._inspected = inspected
        # Held while the container is started, stopped or closed, and while its files are opened.
        self.lock = RLock()
        self._user = os.getpid()
        self._process: int | None = None
        self._supervised: Supervisor | None = None
        # The directory of the supervisor in an attached container.
        self._requests = -1
        # The supervisor runs as long as this is open. The kernel closes it when this process is killed.
        self._lifeline = -1
        self._refers_to_image: bool | None = None
        self._is_being_replaced = False
        self.starts = 0  # Descriptors that were opened before the last start are useless.
        self.max_layer_size: int | None = MAX_LAYER_SIZE
        self.idle_after: float | None = IDLE_AFTER
        self._used_at = monotonic()
        self.users: WeakSet[User] = WeakSet()
        # From here on, the descriptor belongs to this object.
        self._control = held

    def __del__(self) -> None:
        # The container ends when its requests are closed, and then another process may use it. A forked process leaves
        # it to its parent.
        with suppress(AttributeError, OSError):
            if self._user == os.getpid():
                self.close()

    def __repr__(self) -> str:
        return f"<Container {self.name!r}>"

    def mark_filled(self) -> None:
        """Mark a new container as filled: it holds its initial files."""
        os.close(os.open(FILLED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644, dir_fd=self._control))

    # Life cycle

    def _inspect(self) -> Inspected:
        """Return what is known about the container, after starting it if it is not running."""
        with self.lock:
            self._used_at = monotonic()
            self._await_end()
            if not self.is_running:
                self.check_open()
                self._start()
            return self._inspected

    def _await_end(self) -> None:
        """Wait for a container that is ending: its supervisor is gone, but not all of its processes are reaped."""
        if self._supervised is not None and not self._supervised.is_alive:
            until = monotonic() + KILLING
            while self.is_running and monotonic() < until:
                sleep(PAUSE)

    @property
    def is_running(self) -> bool:
        """Whether the container's first process, as it was started, is alive."""
        process = self._process
        try:
            return process is not None and not is_readable(process)
        except OSError:
            return False

    def touch(self) -> None:
        """Record that the container is in use now."""
        self._used_at = monotonic()

    def _start(self) -> None:
        self._let_go()
        if self._is_being_replaced:
            self._settle()
        found = inspect(self.podman, self.container_id)
        if self.is_own:
            found = end(self.podman, found, mark_of(self._path))
            put_back_layer(self.podman, found)
            if is_lost(found):
                self._is_being_replaced = True
                found = replace(self.podman, found)
                self.container_id, self._is_being_replaced = found.container_id, False
            self._lifeline = supervision.lifeline(self._control)
            found = start(self.podman, found, self._control, mark_of(self._path), has_started=is_filled(self._path))
        elif not found.is_running:
            raise fault(
                ContainerNotFound,
                ENOENT,
                f"cannot use the container {self.name!r}: it has stopped; start it and open it again",
            )
        try:
            self._process = os.pidfd_open(found.pid)
        except OSError as error:
            raise ended_immediately(self.podman, self.name, error.errno or EINVAL) from error
        self._inspected, self._refers_to_image = found, None
        self.starts += 1
        if self.is_own and found.upper is not None and kept_layer.is_kept(found.upper):
            self._give_back(found.upper)
        if self.is_own and self.idle_after is not None:
            IDLENESS.watch(self)

    def _settle(self) -> None:
        """Finish a replacement that was interrupted, or undo it."""
        same = of_sessions(self.podman, session_id=self._inspected.labels[SESSION])
        (found,) = settled(self.podman, [one for one in same if one.labels.get(CONTROL) == self._path])
        self.container_id, self._is_being_replaced = found.container_id, False

    def _give_back(self, upper: str) -> None:
        """Restore the files of a container that was started without them, because it did not start with them."""
        logger.warning("started %s over its image alone, because it does not start with its files", self.name)
        try:
            files = HostDirectory(self.name, self.open_files())
            kept_layer.give_back(upper, files, self._image_files, self.mount_points())
        except BaseException:
            self.stop()
            raise

    @property
    def _supervisor(self) -> Supervisor:
        """The supervisor of the running container. Processes that an earlier user left running are killed first."""
        with self.lock:
            inspected = self._inspect()
            if not self.is_own and self._supervised is not None and not self._supervised.is_answering:
                self._disconnect()
            if self._supervised is None:
                self._supervised = self._supervise(inspected)
            return self._supervised

    def _supervise(self, inspected: Inspected) -> Supervisor:
        if self.is_own:
            return self._connected(inspected, self._control)
        try:
            self._requests = self._make_requests()
            self._lifeline = supervision.lifeline(self._requests)
            words = ("/bin/sh", "-c", supervision.script(), "sh", f"/{BESIDE}", mark_of(self._path))
            self.podman.run("exec", "--detach", self.container_id, *words)
            return self._connected(inspected, self._requests)
        except BaseException:
            self._disconnect()
            raise

    def _connected(self, inspected: Inspected, control: int) -> Supervisor:
        made = Supervisor(
            control,
            inspected.pid,
            mark_of(self._path),
            is_running=lambda: self.is_running,
            end=self._end if self.is_own else None,
            exceeded=self._too_large(),
        )
        try:
            made.kill_all()
        except BaseException:
            made.close()
            raise
        return made

    def _too_large(self) -> Callable[[], str | None]:
        """Return a function that says why the layer is too large, or returns `None`."""
        most, upper = self.max_layer_size, self._inspect().upper
        layer = self.open_files() if upper is None else os.open(upper, DIRECTORY)
        weakref.finalize(size := LayerSize(most or 0), os.close, layer)
        return lambda: (
            f"the files of the container take up more than the {most} bytes that are allowed"
            if most is not None and size.is_exceeded(layer)
            else None
        )

    def _make_requests(self) -> int:
        """Create the supervisor's directory among the files of an attached container, and open it."""
        with Opened(self.open_files()) as files:
            with suppress(FileNotFoundError):
                remove_entry(files, BESIDE.encode())
            supervision.make_control(BESIDE, files)
            return os.open(BESIDE, DIRECTORY, dir_fd=files)

    def _end(self) -> None:
        """End the container without Podman; it is started again when it is next used."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)

    def stop(self) -> None:
        """Stop the container: its processes end, its files stay. It is started again when it is next used."""
        with self.lock:
            if self.is_own and not has_monitor(self._inspected):
                # After `podman stop`, the container could not be distinguished from one that ended by itself.
                self._end()
                self._let_go()
                return
            self._let_go()
            if self.is_own:
                self.podman.run("stop", *AT_ONCE, self.container_id)

    def idle_at(self) -> float | None:
        """Return when to stop the container if it is not used before then; `None` if it is not running."""
        return None if self.idle_after is None or not self.is_running else self._used_at + self.idle_after

    def stop_if_idle(self) -> None:
        """Stop the container unless it is in use, or was used again."""

        def stop() -> None:
            with self.lock:
                at = self.idle_at()
                if at is not None and at <= monotonic():
                    self.stop()

        step: Callable[[], object] = stop
        for user in list(self.users):
            step = partial(user.run_unless_used, step)
        step()
        if self.is_running and self.idle_after is not None:
            # The container is in use, or its monitor was killed.
            self._used_at = max(self._used_at, monotonic() - (1 - AGAIN) * self.idle_after)

    def remove(self) -> None:
        """Remove the container and its files. An attached container stays."""
        with self.lock:
            try:
                self._let_go()
                if self.is_own:
                    remove_container(self.podman, self.container_id, self._path)
            finally:
                self.close()

    def close(self) -> None:
        """Release the container, so that another process may use it."""
        with self.lock:
            try:
                self._let_go()
            finally:
                if self._control >= 0:
                    os.close(self._control)
                    self._control = -1

    def check_open(self) -> None:
        """Raise `ValueError` if this process has released the container."""
        if self.is_closed:
            raise ValueError(f"cannot use the container {self.name!r}: it is closed; open its session again")

    @property
    def is_closed(self) -> bool:
        """Whether this process has released the container."""
        return self._control < 0

    def _let_go(self) -> None:
        try:
            self._disconnect()
        finally:
            if self._process is not None:
                os.close(self._process)
                self._process = None

    def _disconnect(self) -> None:
        """Disconnect from the supervisor, which then ends with everything that runs under it."""
        if self._supervised is not None:
            self._supervised.close()
            self._supervised = None
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if self._requests >= 0:
            requests, self._requests = self._requests, -1
            try:
                with suppress(FileNotFoundError):
                    supervision.remove_control(BESIDE, requests)
            finally:
                os.close(requests)

    # Files

    @cached_property
    def image(self) -> Image:
        """The image that the container was made from."""
        return find_image(self.podman, self.image_id)

    @cached_property
    def _image_files(self) -> ImageFiles:
        """The files of that image."""
        return ImageFiles(self._inspected.lower)

    @property
    def has_layer(self) -> bool:
        """Whether a directory holds everything that differs from the image, and only that.

        This is not the case if the storage driver has no layers, or if the layer refers to the image: with `metacopy`,
        it has files without their contents, and with `redirect_dir`, directories without their entries.
        """
        inspected = self._inspect()
        if self._refers_to_image is None:
            self._refers_to_image = refers_to_lower(inspected.pid)
        return inspected.upper is not None and not self._refers_to_image

    def open_files(self) -> int:
        """Open the root of the container's files, without its mounts. The caller closes it."""
        return os.open(self.path_of_files(), DIRECTORY)

    def path_of_files(self) -> str:
        """Return the path on the host of the root of the container's files, while it runs."""
        inspected = self._inspect()
        if inspected.monitor and has_monitor(inspected):
            # The mount may be in its own mount namespace.
            return f"/proc/{inspected.monitor}/root{self._merged(inspected)}"
        if not inspected.monitor and inspected.merged is not None and os.path.ismount(inspected.merged):
            return inspected.merged
        return f"/proc/{inspected.pid}/root/."

    def open_layer(self) -> int:
        """Open the directory of the layer, or of all files if there is no layer."""
        upper = self._inspect().upper
        return os.open(upper, DIRECTORY) if upper is not None and self.has_layer else self.open_files()

    def _merged(self, inspected: Inspected) -> str:
        if inspected.merged:
            return inspected.merged
        # The driver vfs has no mounts, and reports the place of the files only after a mount was requested.
        return self.podman.run("mount", self.container_id).decode().strip()

    def mount_points(self) -> tuple[str, ...]:
        """Return the paths in the container that are not its own files, mostly mounts. None is below another."""
        points = mount_points(self._inspect().pid)
        return topmost(points if self.is_own else [*points, f"/{BESIDE}"])

    @property
    def owner(self) -> tuple[int, int]:
        """The host's ids of the user and the group of the container's first process."""
        return owner_of(self._inspect().pid)


def is_filled(control: str) -> bool:
    """Return whether the container with this control directory holds its initial files."""
    return os.path.exists(os.path.join(control, FILLED))


def mark_of(control: str) -> str:
    """Return the prefix of the marks of a container's commands, which is the same in every process."""
    return f"{sha256(control.encode()).hexdigest()[:12]}."
