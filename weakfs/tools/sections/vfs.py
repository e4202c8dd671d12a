"""A section over files in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.filesystem import Limits
from weakfs.session import Session
from weakfs.tools.defaults import DEFAULT_TOOLS
from weakfs.tools.permissions import Capability, Policy
from weakfs.tools.sections.section import FilesystemSection
from weakfs.tools.tool import Tool

# All that works on files and runs no program.
FILESYSTEM_TOOLS: tuple[Tool, ...] = tuple(tool for tool in DEFAULT_TOOLS if tool.name != "shell")

TEMPLATE = """\
You work on files that only this conversation sees. Paths start at `/`. A call that fails has changed nothing.
Read a file before you change it, and prefer small edits to rewriting whole files.
"""


class VfsSection(FilesystemSection):
    """Files in the session: saved with it, rolled back with it, and forked with it.

    `mounts` are copied in once; a loaded session that holds one already keeps what it has. `limits` bounds the files
    and, in lines and matches, what an answer holds.
    """

    def __init__(
        self,
        *,
        session: Session,
        mounts: Sequence[HostMount] = (),
        limits: Limits = Limits.tools(),  # noqa: B008  # frozen
        read_only: bool = False,
        capability: Capability | None = None,
        policy: Policy | None = None,
        title: str = "Virtual filesystem",
        key: str = "vfs",
        template: str = TEMPLATE,
        tools: Iterable[Tool] = FILESYSTEM_TOOLS,
    ) -> None:
        super().__init__(title=title, key=key, template=template, tools=tools)
        self._filesystem = InMemoryFilesystem(session, mounts=mounts, limits=limits.for_files(), read_only=read_only)
        self.limits = limits
        self.capability = capability
        self.policy = policy

    @property
    def filesystem(self) -> InMemoryFilesystem:
        """The session's own files."""
        return self._filesystem
