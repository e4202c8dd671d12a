"""Kinds of snapshots of a container: its layer as a tree in the store or as a tar archive, or an image."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from typing import Literal

from weakfs.backends.container.lifecycle.container import Container
from weakfs.backends.container.restore import ContainerRoot
from weakfs.backends.container.rootfs import TOP
from weakfs.backends.host.snapshot_kinds import Kinds, Take
from weakfs.filesystem import FilesystemSnapshot
from weakfs.platforms import Opened

ContainerSnapshotKind = Literal["tree", "tar", "image"]

# The name of the images. Each has its own tag, so that cleanup tools do not remove it as unused.
REPOSITORY = "localhost/weakfs-snapshot"


class ContainerKinds(Kinds):
    """Takes snapshots of a container."""

    __slots__ = ()

    _root: ContainerRoot

    def _takes(self) -> dict[str, Take]:
        return {"tree": self._take_tree, "tar": self._take_tar, "image": self._take_image}

    def _take_image(self, snapshot_id: str, tag: str | None, filesystem_id: str, at: int) -> FilesystemSnapshot:
        root = self._root
        root.scan()
        name = f"{REPOSITORY}:{sha256(f'{snapshot_id} {at}'.encode()).hexdigest()[:16]}"
        ref = _commit(root.container, name)
        return FilesystemSnapshot(snapshot_id, filesystem_id, at, "image", ref, root.path, tag)


def _commit(container: Container, name: str) -> str:
    """Make an image of a container's files; return its id."""
    with Opened(container.open_layer()) as files:
        top = os.fstat(files)
    # An image does not store the status of the root directory, so a label does.
    label = f"LABEL {TOP}={stat.S_IMODE(top.st_mode)}:{top.st_mtime_ns}:{top.st_uid}:{top.st_gid}"
    # Not paused: nothing is running in it now, and without cgroups it cannot be paused.
    quiet = ("--quiet",) if container.podman.is_podman else ()
    words = ("commit", *quiet, "--pause=false", "--change", label, container.container_id, name)
    return container.podman.run(*words).decode().strip()
