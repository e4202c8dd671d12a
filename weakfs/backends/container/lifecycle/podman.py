"""Podman: calling the program, and what it reports about containers and images."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from errno import EIO, ENOENT, ENOTSUP, ETIMEDOUT
from hashlib import sha256
from subprocess import PIPE
from typing import Any, TypeVar, cast

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.errors import WeakfsError, fault
from weakfs.messages import clip, one_line

# Starting a container takes a fraction of a second; a busy machine and a large image may take longer.
PATIENCE = 300.0

# The maximum numbers of open files of a container, and of processes of its user on this machine. Commands have their
# own limits, but a fork bomb must not use up all process ids before it is noticed.
MOST_FILES, MOST_PROCESSES = 32_768, 4_096

# The messages of Podman and Docker that there is no image or container with some name.
MISSING = re.compile(r"no such (image|container|object)\b|image not known", re.IGNORECASE)

# Containers are killed immediately, without a grace period.
AT_ONCE = ("--time", "0")

# On a machine with both versions of cgroups, crun refuses to run unless version 2 is unmounted.
HYBRID = "/sys/fs/cgroup/unified"
WITHOUT_HYBRID = ("unshare", "--mount", "sh", "-c", f'umount {HYBRID} && exec "$@"', "sh")


class PodmanUnavailable(WeakfsError, OSError):
    """Podman is not installed, or does not work here."""


class PodmanError(WeakfsError, OSError):
    """Podman refused a request."""


class ImageNotFound(WeakfsError, FileNotFoundError):
    """There is no image with that name on this machine."""


class ContainerNotFound(WeakfsError, FileNotFoundError):
    """There is no container with that name on this machine."""


@frozen
class Image:
    """An image. `base` identifies its files: it is the same on every machine that has the same layers."""

    image_id: str
    base: str
    # The directories of its layers, the top one first; empty with a storage driver other than overlay.
    layers: tuple[str, ...]
    labels: Mapping[str, str] = field(repr=False)


@frozen
class Inspected:
    """What Podman reports about a container. Paths are those of the machine, in the mount namespace of `monitor`."""

    container_id: str
    name: str
    image_id: str
    labels: Mapping[str, str] = field(repr=False)
    status: str
    # The command line that created the container, from the name of the command on; empty for programs other than
    # Podman.
    created_by: tuple[str, ...] = field(repr=False)
    # The first process of the container, and its monitor.
    pid: int
    monitor: int
    # The directories of the merged files, of the container's layer, and of the image's layers, top first. Only the
    # first is known with a storage driver other than overlay.
    merged: str | None
    upper: str | None
    lower: tuple[str, ...]

    @property
    def is_running(self) -> bool:
        """Whether Podman considers the container running."""
        return self.status == "running"


@frozen
class Podman:
    """How Podman is called: the program, options that come before every command, and the OCI runtime to use.

    Any program with the same commands can be used. `options` are, for example, `("--root", path)`.
    """

    program: str = "podman"
    options: tuple[str, ...] = ()
    oci_runtime: str | None = None

    def run(self, *arguments: str, input: bytes | None = None) -> bytes:
        """Run a command of Podman and return what it prints.

        Raises `PodmanUnavailable` if the program is missing, and `PodmanError` with its message if it fails.
        """
        done = self._run(arguments, input)
        if done.returncode:
            raise self._failure(arguments[0], done)
        return done.stdout

    def _failure(self, action: str, done: subprocess.CompletedProcess[bytes]) -> PodmanError:
        said = one_line(clip(_message(done).strip(), 500)) or f"it ended with the exit code {done.returncode}"
        return fault(PodmanError, EIO, f"cannot {action} with {self.program}: {said}")

    def remove(self, container_id: str) -> None:
        """Remove a container, running or not, and its files. Raises `PodmanError` if that fails."""
        words = ("rm", "--force", *(AT_ONCE if self.is_podman else ()), container_id)
        try:
            self.run(*words)
        except PodmanError:
            # For a container that Podman has lost, the first attempt makes Podman notice that it has ended.
            self.run(*words)

    def unmount(self, container_id: str) -> None:
        """Unmount the files of a container that is not running, even if others have mounted them too."""
        if self.is_podman:
            self.run("umount", "--force", container_id)

    def problem(self) -> str | None:
        """Return why containers cannot be run here, in a few words; `None` if the program answers."""
        try:
            self.run("version", "--format", "{{.Version}}")
        except (PodmanUnavailable, PodmanError) as error:
            return str(error)
        return None

    @property
    def is_podman(self) -> bool:
        """Whether the program is Podman, judging by its name, so that options that only Podman has can be used."""
        return os.path.basename(self.program) == "podman"

    @property
    def creation(self) -> tuple[str, ...]:
        """The options of `create` that depend on the machine and the program."""
        # Podman's own defaults may exceed what this process may set.
        limits: list[str] = []
        import resource  # not on Windows

        for name, number, most in (
            ("nofile", resource.RLIMIT_NOFILE, MOST_FILES),
            ("nproc", resource.RLIMIT_NPROC, MOST_PROCESSES),
        ):
            hard = resource.getrlimit(number)[1]
            most = most if hard == resource.RLIM_INFINITY else min(hard, most)
            limits += ("--ulimit", f"{name}={most}:{most}")
        if not self.is_podman:
            return tuple(limits)
        return (*limits, "--cgroups=disabled", "--image-volume=ignore")

    def _run(self, arguments: Sequence[str], input: bytes | None) -> subprocess.CompletedProcess[bytes]:
        program = shutil.which(self.program)
        if program is None:
            raise fault(
                PodmanUnavailable,
                ENOENT,
                f"cannot run containers: there is no program {self.program!r} on the PATH; install Podman, or name "
                f"another program with runtime=Podman(program=...)",
            )
        runtime = () if self.oci_runtime is None else ("--runtime", self.oci_runtime)
        words = [*_prefix(), program, *self.options, *runtime, *arguments]
        try:
            # In its own process group: a signal to the group of this process must not end a container.
            with subprocess.Popen(words, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True) as process:
                try:
                    out, err = process.communicate(input or b"", timeout=PATIENCE)
                except BaseException:
                    # Kills everything that Podman started, except for processes that left its group, such as
                    # containers.
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    raise
        except subprocess.TimeoutExpired:
            action = " ".join(arguments[:2] if "inspect" in arguments[:2] else arguments[:1])
            raise fault(
                PodmanUnavailable,
                ETIMEDOUT,
                f"cannot {action} with {self.program}: it was killed because it had not ended after {PATIENCE:g} s; "
                f"check whether it works from a shell",
            ) from None
        except OSError as error:
            raise fault(
                PodmanUnavailable,
                ENOTSUP,
                f"cannot run {self.program}: {one_line(clip(str(error), 300))}; check whether it works from a shell",
            ) from error
        return subprocess.CompletedProcess(words, process.returncode, out, err)


def find_image(podman: Podman, name: str) -> Image:
    """Return an image of this machine. Raises `ImageNotFound`; images are never pulled."""
    done = podman._run(("image", "inspect", "--", name), None)
    if done.returncode and _is_missing(done):
        raise fault(
            ImageNotFound,
            ENOENT,
            f"cannot find the image {name!r} on this machine; pull it with '{podman.program} pull "
            f"{shlex.quote(name)}', or name one of '{podman.program} images'",
        )
    if done.returncode:
        raise podman._failure(f"inspect the image {name!r}", done)
    return _read(podman, f"the image {name!r}", done, _image, expected=1)[0]


def _image(found: dict[str, Any]) -> Image:
    digests = [str(one) for one in found["RootFS"].get("Layers") or ()]
    base = digests[0] if len(digests) == 1 else f"sha256:{sha256(' '.join(digests).encode()).hexdigest()}"
    data = _graph_data(found)
    paths = [data.get("UpperDir") or "", *(data.get("LowerDir") or "").split(":")]
    return Image(str(found["Id"]).removeprefix("sha256:"), base, tuple(path for path in paths if path), _labels(found))


def inspect(podman: Podman, name: str) -> Inspected:
    """Return what is known about a container. Raises `ContainerNotFound`."""
    found = inspect_all(podman, [name])
    if not found:
        raise fault(
            ContainerNotFound,
            ENOENT,
            f"cannot find the container {name!r}; name one of '{podman.program} ps --all'",
        )
    return found[0]


def inspect_all(podman: Podman, names: Sequence[str]) -> list[Inspected]:
    """Return what is known about containers, without those that do not exist."""
    if not names:
        return []
    done = podman._run(("container", "inspect", "--", *names), None)
    if done.returncode and not _is_missing(done):
        raise podman._failure("inspect containers", done)
    return _read(podman, "containers", done, _inspected, expected=len(names))


def _inspected(found: dict[str, Any]) -> Inspected:
    state, data = found["State"], _graph_data(found)
    return Inspected(
        str(found["Id"]),
        str(found["Name"]).lstrip("/"),
        str(found["Image"]).removeprefix("sha256:"),
        _labels(found),
        str(state["Status"]),
        _since_create(found["Config"].get("CreateCommand") or []),
        int(state["Pid"]),
        int(state.get("ConmonPid") or 0),
        data.get("MergedDir"),
        data.get("UpperDir"),
        tuple((data.get("LowerDir") or "").split(":")) if data.get("UpperDir") else (),
    )


def _since_create(words: list[str]) -> tuple[str, ...]:
    """Return the words of a command of Podman from the name of the command on."""
    return tuple(words[words.index("create") :]) if "create" in words else ()


def labelled(podman: Podman, label: str, *, name: str = "") -> list[str]:
    """Return the ids of the containers with a label and a name that begins with `name`, running or not."""
    filters = ("--filter", f"label={label}", *(("--filter", f"name=^{name}") if name else ()))
    return podman.run("ps", "--all", "--no-trunc", "--quiet", *filters).decode("utf-8", "replace").split()


T = TypeVar("T")


def _read(
    podman: Podman,
    what: str,
    done: subprocess.CompletedProcess[bytes],
    read: Callable[[dict[str, Any]], T],
    *,
    expected: int,
) -> list[T]:
    """Read the JSON that Podman printed. Raises `PodmanError` if it is something else."""
    try:
        found = [read(one) for one in cast("list[dict[str, Any]]", json.loads(done.stdout))]
        if not done.returncode and len(found) != expected:
            raise ValueError(f"expected {expected} entries, not {len(found)}")
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise fault(
            PodmanError,
            EIO,
            f"cannot read what {podman.program} reports about {what} ({type(error).__name__}: {error}); check whether "
            f"it works from a shell",
        ) from error
    return found


def _message(done: subprocess.CompletedProcess[bytes]) -> str:
    return done.stderr.decode("utf-8", "replace")


def _is_missing(done: subprocess.CompletedProcess[bytes]) -> bool:
    """Return whether a command failed because nothing has that name, which the exit code does not show."""
    return MISSING.search(_message(done)) is not None


def _prefix() -> tuple[str, ...]:
    return WITHOUT_HYBRID if os.geteuid() == 0 and os.path.ismount(HYBRID) else ()


def _labels(found: dict[str, Any]) -> dict[str, str]:
    return cast("dict[str, str]", (found.get("Config") or {}).get("Labels") or {})


def _graph_data(found: dict[str, Any]) -> dict[str, str]:
    return cast("dict[str, str]", found.get("GraphDriver", {}).get("Data") or {})
