"""A section for a host directory, for programs that have their own file tools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

from weakfs.backends import HostFilesystem, HostMount, InMemoryFilesystem
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.backends.temporary_directories import Scratch
from weakfs.filesystem import Limits
from weakfs.reducers import MountReport
from weakfs.session import Session
from weakfs.snapshots import Store
from weakfs.tools.permissions import Capability
from weakfs.tools.policy import Policy
from weakfs.tools.sections.section import FilesystemSection
from weakfs.tools.tool import Tool

TEMPLATE = """\
Work inside the workspace directory, and leave everything outside it alone.
"""


class WorkspaceSection(FilesystemSection):
    """A host directory: `root`, or a temporary one that is removed when the section is closed.

    It has no tools unless some are given: agents that run programs use their native tools. `mounts` are copied into the
    temporary directory; `mount_reports` lists what was left out. A runtime that resumes its sessions must pass `root`,
    because a temporary directory does not outlive the section. Raises `ValueError` for `mounts` together with `root`.
    """

    def __init__(
        self,
        *,
        session: Session,
        root: str | os.PathLike[str] | None = None,
        mounts: Sequence[HostMount] = (),
        limits: Limits = Limits.tools(),  # noqa: B008  # frozen
        read_only: bool = False,
        snapshots: SnapshotKind = "tree",
        store: Store | str | os.PathLike[str] | None = None,
        capability: Capability | None = None,
        policy: Policy | None = None,
        title: str = "Workspace",
        key: str = "workspace",
        template: str = TEMPLATE,
        tools: Iterable[Tool] = (),
    ) -> None:
        super().__init__(title=title, key=key, template=template, tools=tools)
        if root is not None and mounts:
            raise ValueError(
                f"cannot copy mounts into {os.fspath(root)!r}: it may already contain files; leave out root to use a "
                "temporary directory, or leave out mounts"
            )
        self.limits = limits
        self.capability = capability
        self.policy = policy
        self.mount_reports: tuple[MountReport, ...] = ()
        self._scratch: Scratch | None = None
        if root is None:
            self._scratch = Scratch()
            root = self._scratch.files
        try:
            if mounts:
                self.mount_reports = _copy(mounts, root, limits, store)
            self._filesystem = HostFilesystem(
                root,
                session=session,
                limits=limits.for_files(),
                read_only=read_only,
                snapshots=snapshots,
                store=store,
            )
        except BaseException:
            self.close()
            raise

    @property
    def filesystem(self) -> HostFilesystem:
        """The workspace's files."""
        return self._filesystem

    @property
    def root(self) -> str:
        """The host directory."""
        return self._filesystem.root

    def close(self) -> None:
        """Remove the directory if the section made it; closing again does nothing."""
        if self._scratch is not None:
            # Anything that cannot be removed now is removed later, like the directory of a killed process.
            with suppress(OSError):
                self._scratch.close()


def _copy(
    mounts: Sequence[HostMount],
    directory: str | os.PathLike[str],
    limits: Limits,
    store: Store | str | os.PathLike[str] | None,
) -> tuple[MountReport, ...]:
    """Copy host trees into an empty directory through memory, with the same rules as for any mount."""
    read = InMemoryFilesystem(mounts=mounts, limits=limits)
    HostFilesystem(directory, limits=limits, store=store).import_bytes(read.export_bytes())
    return read.mounts
