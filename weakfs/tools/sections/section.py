"""One section of a prompt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from string import Template

from weakfs.filesystem import Filesystem, Limits
from weakfs.tools.permissions import Capability, Policy
from weakfs.tools.tool import Tool


class Section:
    """A title, the text under it, and the tools of the section.

    `key` names the section in its prompt. `template` is Markdown; with `values` each `$name` and `${name}` in it is
    replaced (`$$` is a dollar sign), without them it is used as it is. Raises `ValueError` if a value is missing.
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
    """A section that has a filesystem: its tools work on that, within `capability` and `policy`.

    `limits` bounds what an answer of its tools holds.
    """

    limits: Limits = Limits.tools()
    capability: Capability | None = None
    policy: Policy | None = None

    @property
    @abstractmethod
    def filesystem(self) -> Filesystem:
        """The filesystem that the section's tools work on."""


def _filled_in(key: str, template: str, values: Mapping[str, object]) -> str:
    try:
        return Template(template).substitute(values)
    except KeyError as error:
        raise ValueError(
            f"cannot fill in the section {key!r}: it names ${error.args[0]} and there is no such value; give one, "
            f"or write $$ for a dollar sign"
        ) from error
    except ValueError as error:
        raise ValueError(f"cannot fill in the section {key!r}: {error}; write $$ for a dollar sign") from error
