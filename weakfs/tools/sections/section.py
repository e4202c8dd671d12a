"""Sections: plain ones with a title, text and tools, those with a filesystem, and those with files in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from string import Template
from typing import Self

from weakfs.backends import HostMount, InMemoryFilesystem
from weakfs.filesystem import Filesystem, Limits
from weakfs.session import Session
from weakfs.tools.defaults import DEFAULT_TOOLS
from weakfs.tools.permissions import Capability
from weakfs.tools.policy import Policy
from weakfs.tools.tool import Tool

# The tools that work on files and run no programs.
FILESYSTEM_TOOLS: tuple[Tool, ...] = tuple(tool for tool in DEFAULT_TOOLS if tool.name != "shell")

TEMPLATE = """\
You work on files that only this conversation sees. Paths start at `/`. A call that fails changes nothing.
Read a file before you change it, and prefer small edits to rewriting whole files.
"""


class Section:
    """A title, the text under it, and the tools of the section.

    `key` names the section in its prompt. `template` is Markdown. With `values`, each `$name` and `${name}` in it is
    replaced (`$$` is a dollar sign); without them it is used unchanged. Raises `ValueError` if a value is missing.
    """

    def __init__(
        self,
        *,
        title: str,
        key: str,
        template: str,
        tools: Iterable[Tool] = (),
        values: Mapping[str, object] | None = None,
    ) -> None:
        self.title = title
        self.key = key
        self.tools = tuple(tools)
        self._text = template if values is None else _filled_in(key, template, values)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key!r}>"

    def render(self) -> str:
        """Return the section's Markdown, under its title."""
        return f"## {self.title}\n\n{self._text.strip()}\n"


class FilesystemSection(Section, ABC):
    """A section with a filesystem, on which its tools work within `capability` and `policy`.

    `limits` bounds the answers of its tools.
    """

    limits: Limits = Limits.tools()
    capability: Capability | None = None
    policy: Policy | None = None

    @property
    @abstractmethod
    def filesystem(self) -> Filesystem:
        """The filesystem that the section's tools work on."""

    def close(self) -> None:
        """Release what the section holds; closing again does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class VfsSection(FilesystemSection):
    """Files in the session: saved with it, rolled back with it, and forked with it.

    `mounts` are copied in once; if a loaded session already has a mount, its files stay unchanged. `limits` bounds the
    files, and the lines and matches in an answer.
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


def _filled_in(key: str, template: str, values: Mapping[str, object]) -> str:
    try:
        return Template(template).substitute(values)
    except KeyError as error:
        raise ValueError(
            f"cannot fill in the section {key!r}: its template uses ${error.args[0]}, which has no value; give one, "
            f"or write $$ for a dollar sign"
        ) from error
    except ValueError as error:
        raise ValueError(f"cannot fill in the section {key!r}: {error}; write $$ for a dollar sign") from error
