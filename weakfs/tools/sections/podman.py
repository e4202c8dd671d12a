"""A section for the files and commands of a container."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from weakfs.backends import ContainerFilesystem, HostMount, Podman
from weakfs.backends.container import Container
from weakfs.backends.container.lifecycle.options import IDLE_AFTER, MAX_LAYER_SIZE
from weakfs.backends.container.snapshot_kinds import ContainerSnapshotKind
from weakfs.filesystem import Limits
from weakfs.session import Session
from weakfs.snapshots import Store
from weakfs.tools.handlers import eval_tool, shell_tool
from weakfs.tools.permissions import Capability
from weakfs.tools.policy import Policy
from weakfs.tools.sections.section import FILESYSTEM_TOOLS, FilesystemSection
from weakfs.tools.tool import Tool

TEMPLATE = """\
You work in a container. File tools and commands see the same files under the same paths. Commands run in `$workdir`,
and relative paths start there. $network A call that fails or takes too long changes nothing, and $processes
"""
NO_PROCESSES = "nothing that a command\nstarts keeps running."
PROCESSES = "nothing that a command\nstarts keeps running, except what `process_start` starts."
NO_NETWORK = "There is no network access."
NETWORK = "The network can be used."

PODMAN_TOOLS: tuple[Tool, ...] = (*FILESYSTEM_TOOLS, shell_tool(), eval_tool())


class PodmanSection(FilesystemSection):
    """A section with its own container, created from `image`, or with a running one: see `ContainerFilesystem`.

    Closing the section stops its container and keeps its files for the session; `remove` removes them as well. In
    `template`, `$workdir`, `$network` and `$processes` are replaced.
    """

    def __init__(
        self,
        *,
        session: Session,
        image: str | None = None,
        container: str | Container | None = None,
        name: str = "container",
        root: str = "/",
        workdir: str | None = None,
        mounts: Sequence[HostMount] = (),
        network: str = "none",
        user: str | None = None,
        capabilities: Iterable[str] = (),
        variables: Mapping[str, str] | None = None,
        limits: Limits = Limits.tools(),  # noqa: B008  # frozen
        read_only: bool = False,
        snapshots: ContainerSnapshotKind = "tree",
        store: Store | str | os.PathLike[str] | None = None,
        runtime: Podman | None = None,
        max_layer_size: int | None = MAX_LAYER_SIZE,
        idle_after: float | None = IDLE_AFTER,
        capability: Capability | None = None,
        policy: Policy | None = None,
        title: str = "Sandbox",
        key: str = "podman",
        template: str = TEMPLATE,
        tools: Iterable[Tool] = PODMAN_TOOLS,
    ) -> None:
        self._filesystem = ContainerFilesystem(
            session,
            image=image,
            container=container,
            name=name,
            root=root,
            workdir=workdir,
            mounts=mounts,
            network=network,
            user=user,
            capabilities=capabilities,
            variables=variables,
            limits=limits.for_files(),
            read_only=read_only,
            snapshots=snapshots,
            store=store,
            runtime=runtime,
            max_layer_size=max_layer_size,
            idle_after=idle_after,
        )
        tools = tuple(tools)
        has_processes = any(tool.name == "process_start" for tool in tools)
        values = {
            "workdir": self._filesystem.workdir,
            "network": NO_NETWORK if network == "none" else NETWORK,
            "processes": PROCESSES if has_processes else NO_PROCESSES,
        }
        super().__init__(title=title, key=key, template=template, tools=tools, values=values)
        self.limits = limits
        self.capability = capability
        self.policy = policy

    @property
    def filesystem(self) -> ContainerFilesystem:
        """The container's files."""
        return self._filesystem

    def close(self) -> None:
        """Stop the container and release it, so that its session can be resumed; closing again does nothing."""
        self._filesystem.close()

    def remove(self) -> None:
        """Remove the container with its files."""
        self._filesystem.container.remove()
