"""Podman: calling the program, and what it reports about containers and images."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from errno import EIO, ENOENT, ENOTSUP
from hashlib import sha256
from typing import Any, cast

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.errors import WeakfsError
from weakfs.filesystem.errors import fault
from weakfs.messages import clip, one_line

# Starting a container takes a fraction of a second; a busy machine and a large image may take long.
PATIENCE = 300.0

# The most open files of a container, and the most processes of its user on this machine: commands have limits of their
# own, but a fork bomb must not take all process ids before it is noticed.
MOST_FILES, MOST_PROCESSES = 32_768, 4_096

# A container is stopped without being asked first.
AT_ONCE = ("--time", "0")

# On a machine with cgroups of both versions, crun refuses to run unless those of version 2 are out of sight.
HYBRID = "/sys/fs/cgroup/unified"
WITHOUT_HYBRID = ("unshare", "--mount", "sh", "-c", f'umount {HYBRID} && exec "$@"', "sh")


class PodmanUnavailable(WeakfsError, OSError):
    """Podman is not installed, or does not work here."""


class PodmanError(WeakfsError, OSError):
    """Podman refused a request."""


class ImageNotFound(WeakfsError, FileNotFoundError):
    """There is no image of that name on this machine."""


class ContainerNotFound(WeakfsError, FileNotFoundError):
    """There is no container of that name on this machine."""


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
    # The command by which it was made, from its first word on; empty with another program.
    created_by: tuple[str, ...] = field(repr=False)
    # The first process of the container, and the one that watches over it.
    pid: int
    monitor: int
    # The directory in which everything is seen, what differs from the image, and the image's layers, top first. Only
    # the first is known with a storage driver other than overlay.
    merged: str | None
    upper: str | None
    lower: tuple[str, ...]

    @property
    def is_running(self) -> bool:
        """Whether Podman considers it running."""
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
            said = one_line(clip(done.stderr.decode("utf-8", "replace").strip(), 500))
            raise fault(PodmanError, EIO, f"cannot {arguments[0]} with {self.program}: {said or 'it failed'}")
        return done.stdout

    def remove(self, container_id: str) -> None:
        """Remove a container, running or not, and its files. Raises `PodmanError` if that fails."""
        words = ("rm", "--force", *AT_ONCE, container_id)
        try:
            self.run(*words)
        except PodmanError:
            # Of a container that Podman has lost, the first attempt finds out that it has ended.
            self.run(*words)

    def problem(self) -> str | None:
        """Return why containers cannot be run here, in a few words; `None` if the program answers."""
        try:
            self.run("version", "--format", "{{.Version}}")
        except (PodmanUnavailable, PodmanError) as error:
            return str(error)
        return None

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
        if os.path.basename(self.program) != "podman":
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
            return subprocess.run(
                words,
                input=input if input is not None else b"",
                capture_output=True,
                timeout=PATIENCE,
                # A signal to the runtime's group must not end a container.
                start_new_session=True,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise fault(
                PodmanUnavailable,
                ENOTSUP,
                f"cannot run {self.program}: {one_line(clip(str(error), 300))}; check whether it works from a shell",
            ) from error


def find_image(podman: Podman, name: str) -> Image:
    """Return an image of this machine. Raises `ImageNotFound`; images are never pulled."""
    done = podman._run(("image", "inspect", name), None)
    if done.returncode:
        raise fault(
            ImageNotFound,
            ENOENT,
            f"cannot find the image {name!r} on this machine; pull it with '{podman.program} pull {name}', or name "
            f"one of '{podman.program} images'",
        )
    found = _first(done.stdout)
    digests = [str(one) for one in found["RootFS"].get("Layers") or ()]
    base = digests[0] if len(digests) == 1 else f"sha256:{sha256(' '.join(digests).encode()).hexdigest()}"
    data = _graph_data(found)
    paths = [data.get("UpperDir") or "", *(data.get("LowerDir") or "").split(":")]
    return Image(str(found["Id"]).removeprefix("sha256:"), base, tuple(path for path in paths if path), _labels(found))


def inspect(podman: Podman, name: str) -> Inspected:
    """Return what is known about a container. Raises `ContainerNotFound`."""
    done = podman._run(("container", "inspect", name), None)
    if done.returncode:
        raise fault(
            ContainerNotFound,
            ENOENT,
            f"cannot find the container {name!r}; name one of '{podman.program} ps --all'",
        )
    found = _first(done.stdout)
    state, data = found["State"], _graph_data(found)
    return Inspected(
        found["Id"],
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


def labelled(podman: Podman, **labels: str) -> list[str]:
    """Return the ids of the containers that have these labels, running or not; an empty value stands for any."""
    words = [f"label={name}={value}" if value else f"label={name}" for name, value in labels.items()]
    filters = [word for one in words for word in ("--filter", one)]
    return podman.run("ps", "--all", "--no-trunc", "--quiet", *filters).decode().split()


def _prefix() -> tuple[str, ...]:
    return WITHOUT_HYBRID if os.geteuid() == 0 and os.path.ismount(HYBRID) else ()


def _first(output: bytes) -> dict[str, Any]:
    return cast("list[dict[str, Any]]", json.loads(output))[0]


def _labels(found: dict[str, Any]) -> dict[str, str]:
    return cast("dict[str, str]", (found.get("Config") or {}).get("Labels") or {})


def _graph_data(found: dict[str, Any]) -> dict[str, str]:
    return cast("dict[str, str]", found.get("GraphDriver", {}).get("Data") or {})
