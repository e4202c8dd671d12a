"""The container backend: files and commands of a Podman container."""

from weakfs.backends.container.filesystem import CommandResult, ContainerFilesystem
from weakfs.backends.container.lifecycle.container import Container
from weakfs.backends.container.lifecycle.listing import ContainerInfo, containers, remove_unused
from weakfs.backends.container.lifecycle.options import ContainerOptions
from weakfs.backends.container.lifecycle.podman import (
    ContainerNotFound,
    ImageNotFound,
    Podman,
    PodmanError,
    PodmanUnavailable,
)

__all__ = [
    "CommandResult",
    "Container",
    "ContainerFilesystem",
    "ContainerInfo",
    "ContainerNotFound",
    "ContainerOptions",
    "ImageNotFound",
    "Podman",
    "PodmanError",
    "PodmanUnavailable",
    "containers",
    "remove_unused",
]
