"""The life of a container: made or found, started when it is needed, stopped and removed."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from errno import EBUSY, EINVAL, ENOENT
from functools import cached_property
from hashlib import sha256
from threading import RLock

from attrs import field, frozen

from weakfs.backends.container import supervisor as supervision
from weakfs.backends.container.image_files import ImageFiles
from weakfs.backends.container.podman import (
    ContainerNotFound,
    Image,
    Inspected,
    Podman,
    PodmanError,
    find_image,
    inspect,
    labelled,
)
from weakfs.backends.container.supervisor import Supervisor
from weakfs.filesystem.errors import fault
from weakfs.platforms import fcntl
from weakfs.snapshots.directory.entries import DIRECTORY
from weakfs.snapshots.directory.entries import remove as remove_entry

# Where a container sees the directory through which its supervisor is reached.
INSIDE = "/run/weakfs"

# The same in a container of somebody else, in its root.
BESIDE = ".weakfs"

# On an image that is a snapshot: mode, time, user and group of the root.
TOP = "weakfs.top"

SESSION, NAME, CONTROL = "weakfs.session", "weakfs.name", "weakfs.control"

# A container that was found with another runtime's is stopped without being asked first.
AT_ONCE = ("--time", "0")


@frozen(kw_only=True)
class ContainerOptions:
    """How a container is made. It has no network, no capabilities and no way to gain privileges unless told otherwise.

    `user` is whom its commands run as, by number or name. `variables` are set for everything in it; `podman inspect`
    shows them, so secrets belong to single commands.
    """

    image: str
    network: str = "none"
    user: str | None = None
    capabilities: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    read_only: bool = False

    def words(self) -> list[str]:
        """Return the options of `podman create`."""
        return [
            *("--network", self.network, "--cap-drop", "all", "--security-opt", "no-new-privileges"),
            *(word for one in self.capabilities for word in ("--cap-add", one)),
            *(("--user", self.user) if self.user is not None else ()),
            *(word for name, value in self.variables.items() for word in ("--env", f"{name}={value}")),
            *(("--read-only",) if self.read_only else ()),
        ]


class Container:
    """A container that this process uses; no other process may use it at the same time.

    `close` lets go of it, `stop` ends its processes and keeps its files, `remove` removes it.
    """

    def __init__(self, podman: Podman, container_id: str, control: str, *, is_own: bool) -> None:
        inspected = inspect(podman, container_id)
        self.podman = podman
        self.container_id = inspected.container_id
        self.name = inspected.name
        self.is_own = is_own
        self.image_id = inspected.image_id
        self._path = control
        self._inspected = inspected
        self._lock = RLock()
        self._control = os.open(control, DIRECTORY)
        self._process: int | None = None
        self._supervised: Supervisor | None = None
        # The directory of the supervisor in a container of somebody else.
        self._requests = -1
        # Counts the starts: what was opened before the last one is of no use.
        self.starts = 0
        try:
            fcntl.flock(self._control, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._control)
            raise fault(
                OSError,
                EBUSY,
                f"cannot use the container {self.name!r}: another process uses it for the same session; end that "
                f"process, or give this one another session or name",
            ) from None

    def __repr__(self) -> str:
        return f"<Container {self.name!r}>"

    @classmethod
    def create(cls, podman: Podman, options: ContainerOptions, *, session_id: str, name: str, state: str) -> Container:
        """Make a container for a session, with its control directory in `state`; it is not started yet."""
        find_image(podman, options.image)
        own = f"weakfs-{sha256(session_id.encode()).hexdigest()[:8]}-{secrets.token_hex(4)}"
        control = os.path.join(state, own)
        os.makedirs(state, mode=0o700, exist_ok=True)
        supervision.make_control(control, None)
        labels = {SESSION: session_id, NAME: name, CONTROL: control}
        try:
            podman.run(
                *("create", "--pull", "never", "--name", own, "--hostname", "weakfs"),
                *(word for label, value in labels.items() for word in ("--label", f"{label}={value}")),
                *options.words(),
                *podman.creation,
                *("--volume", f"{control}:{INSIDE}:ro", "--workdir", "/", "--entrypoint", "[]"),
                *(options.image, "/bin/sh", "-c", supervision.script(), "sh", INSIDE),
            )
            return cls(podman, own, control, is_own=True)
        except BaseException:
            shutil.rmtree(control, ignore_errors=True)
            raise

    @classmethod
    def find(cls, podman: Podman, *, session_id: str, name: str) -> Container | None:
        """Find the container that an earlier process made for a session; `None` if there is none.

        Raises `OSError` (EBUSY) if that process is still alive.
        """
        for one in labelled(podman, **{SESSION: session_id, NAME: name}):
            inspected = inspect(podman, one)
            control = inspected.labels.get(CONTROL, "")
            if os.path.isdir(control):
                return cls(podman, one, control, is_own=True)
        return None

    @classmethod
    def attach(cls, podman: Podman, name: str, *, state: str) -> Container:
        """Attach to a container that somebody else made and started."""
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
        return cls(podman, name, control, is_own=False)

    # Life

    def _inspect(self) -> Inspected:
        """Return what is known about the running container; it is started if it does not run."""
        with self._lock:
            if not self.is_running:
                if self.is_closed:
                    raise ValueError(f"cannot use the container {self.name!r}: it is closed; open its session again")
                self._start()
            return self._inspected

    @property
    def is_running(self) -> bool:
        """Whether the container's first process, as it was started, is alive."""
        if self._process is None:
            return False
        try:
            return not _has_ended(self._process)
        except OSError:
            return False

    def _start(self) -> None:
        self._let_go()
        found = inspect(self.podman, self.container_id)
        if not found.is_running:
            if not self.is_own:
                raise fault(
                    ContainerNotFound,
                    ENOENT,
                    f"cannot use the container {self.name!r}: it has stopped; start it and open it again",
                )
            self.podman.run("start", self.container_id)
            found = inspect(self.podman, self.container_id)
        try:
            self._process = os.pidfd_open(found.pid)
        except OSError as error:
            raise fault(
                PodmanError,
                error.errno or EINVAL,
                f"cannot start the container {self.name!r}: its first process ended at once; the image needs a "
                f"/bin/sh, and '{self.podman.program} logs {self.name}' may say more",
            ) from error
        self._inspected = found
        self.starts += 1

    @property
    def _supervisor(self) -> Supervisor:
        """The supervisor of the running container. What an earlier process left running is killed first."""
        with self._lock:
            inspected = self._inspect()
            if self._supervised is None:
                self._supervised = self._supervise(inspected)
            return self._supervised

    def _supervise(self, inspected: Inspected) -> Supervisor:
        if self.is_own:
            made = Supervisor(self._control, INSIDE, inspected.pid, is_alone=True)
        else:
            self._requests = self._make_requests()
            words = ("/bin/sh", "-c", supervision.script(), "sh", f"/{BESIDE}")
            self.podman.run("exec", "--detach", self.container_id, *words)
            made = Supervisor(self._requests, f"/{BESIDE}", inspected.pid, is_alone=False)
        try:
            made.kill_all()
        except BaseException:
            made.close()
            raise
        return made

    def _make_requests(self) -> int:
        """Make the directory of the supervisor among the files of somebody else's container, and open it."""
        files = self.open_files()
        try:
            with suppress(FileNotFoundError):
                remove_entry(files, BESIDE.encode())
            supervision.make_control(BESIDE, files)
            return os.open(BESIDE, DIRECTORY, dir_fd=files)
        finally:
            os.close(files)

    def stop(self) -> None:
        """Stop the container: its processes end, its files stay. It is started again when it is next used.

        One whose monitor was killed goes on running: Podman could not start it again.
        """
        with self._lock:
            self._let_go()
            if self.is_own and _has_monitor(self._inspected):
                self.podman.run("stop", *AT_ONCE, self.container_id)

    def remove(self) -> None:
        """Remove the container and its files; one that somebody else made stays."""
        with self._lock:
            self.close()
            if self.is_own:
                remove(self.podman, self.container_id, self._path)

    def close(self) -> None:
        """Let go of the container, so that another process may use it."""
        with self._lock:
            self._let_go()
            if self._control >= 0:
                os.close(self._control)
                self._control = -1

    @property
    def is_closed(self) -> bool:
        """Whether this process has let go of the container."""
        return self._control < 0

    def _let_go(self) -> None:
        if self._supervised is not None:
            self._supervised.close()
            self._supervised = None
        if self._requests >= 0:
            files = os.open("..", DIRECTORY, dir_fd=self._requests)
            try:
                with suppress(FileNotFoundError):
                    remove_entry(files, BESIDE.encode())
            finally:
                os.close(files)
                os.close(self._requests)
                self._requests = -1
        if self._process is not None:
            os.close(self._process)
            self._process = None

    # Files

    @cached_property
    def _image(self) -> Image:
        """The image that the container was made from."""
        return find_image(self.podman, self.image_id)

    @cached_property
    def _image_files(self) -> ImageFiles:
        """The files of that image."""
        return ImageFiles(self._inspected.lower)

    def commit(self, name: str) -> str:
        """Make an image of the container's files; return its id."""
        files = self.open_layer()
        try:
            top = os.fstat(files)
        finally:
            os.close(files)
        # An image does not hold the status of the root.
        label = f"LABEL {TOP}={stat.S_IMODE(top.st_mode)}:{top.st_mtime_ns}:{top.st_uid}:{top.st_gid}"
        # It runs nothing while this is called, and without cgroups it cannot be paused.
        words = ("--quiet", "--pause=false", "--change", label, self.container_id, name)
        return self.podman.run("commit", *words).decode().strip()

    @property
    def has_layer(self) -> bool:
        """Whether the storage driver keeps what differs from the image apart."""
        return self._inspected.upper is not None

    def open_files(self) -> int:
        """Open the root of the container's files, without what is mounted on them; the caller closes it."""
        return os.open(self.path_of_files(), DIRECTORY)

    def path_of_files(self) -> str:
        """Return the path on the host of the root of the container's files, while it runs."""
        inspected = self._inspect()
        merged = self._merged(inspected)
        if not inspected.monitor:
            return merged
        if _has_monitor(inspected):
            # The mount may be in a mount namespace of its own.
            return f"/proc/{inspected.monitor}/root{merged}"
        return f"/proc/{inspected.pid}/root/."

    def open_layer(self) -> int:
        """Open the directory of what differs from the image, or of all files if there is none."""
        inspected = self._inspect()
        return self.open_files() if inspected.upper is None else os.open(inspected.upper, DIRECTORY)

    def _merged(self, inspected: Inspected) -> str:
        # The driver vfs has no mounts, and does not say where the files are before it is asked for one.
        return inspected.merged or self.podman.run("mount", self.container_id).decode().strip()

    def mount_points(self) -> tuple[str, ...]:
        """Return the paths in the container that are not files of its own, mostly mounts; none below another."""
        found: list[str] = []
        with open(f"/proc/{self._inspect().pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
            points = sorted(line.split()[4].encode().decode("unicode_escape") for line in lines)
        if not self.is_own:
            points.append(f"/{BESIDE}")
        for point in points:
            if point != "/" and not any(point.startswith(f"{one}/") for one in found):
                found.append(point)
        return tuple(found)

    @property
    def owner(self) -> tuple[int, int]:
        """The user and the group, as the machine counts them, of the container's first process."""
        with open(f"/proc/{self._inspect().pid}/status", encoding="ascii", errors="replace") as lines:
            found = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
        return int(found["Uid"][0]), int(found["Gid"][0])


def remove(podman: Podman, container_id: str, control: str) -> None:
    """Remove a container with everything that belongs to it."""
    with suppress(PodmanError):
        podman.run("rm", "--force", *AT_ONCE, container_id)
    with suppress(ContainerNotFound):
        inspect(podman, container_id)
        raise fault(PodmanError, EBUSY, f"cannot remove the container {container_id[:12]!r}: it is still there")
    shutil.rmtree(control, ignore_errors=True)


def _has_monitor(inspected: Inspected) -> bool:
    return not inspected.monitor or os.path.exists(f"/proc/{inspected.monitor}/root")


def _has_ended(process: int) -> bool:
    import select

    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(0))
