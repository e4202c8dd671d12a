"""A prompt: its sections in order, the section that provides each tool, and calls of the tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from threading import Lock
from typing import cast

from attrs import evolve, field

from weakfs.class_decorators import frozen
from weakfs.filesystem import Filesystem
from weakfs.messages import a_type
from weakfs.session import Session
from weakfs.tools.context import ToolContext
from weakfs.tools.providers.definitions import definitions
from weakfs.tools.results import ToolResult
from weakfs.tools.schemas.content import OpenAIApi, Provider, check_provider, chosen_provider
from weakfs.tools.sections.section import FilesystemSection, Section
from weakfs.tools.tool import Tool
from weakfs.tools.toolset import Toolset


@frozen
class RenderedPrompt:
    """What is sent to the model: the text and the tools."""

    text: str = field(repr=False)
    tools: tuple[Tool, ...]
    provider: Provider | None = None

    def definitions(
        self, provider: Provider | None = None, *, api: OpenAIApi = "chat", strict_schemas: bool = True
    ) -> list[dict[str, object]]:
        """Return the tools in the form that a provider's API takes, as `Toolset.definitions` does."""
        chosen = chosen_provider(provider, self.provider)
        return definitions(self.tools, chosen, api=api, strict_schemas=strict_schemas, used_by=self.provider)


class Prompt:
    """Sections in the order in which a model reads them.

    `provider` names the provider of the models that make the calls, as in `Toolset`. Raises `ValueError` if two
    sections have the same key, or two tools the same name, because a call names only the tool.
    """

    def __init__(self, *, sections: Iterable[Section], key: str = "prompt", provider: Provider | None = None) -> None:
        check_provider(provider)
        self.key = key
        self.provider: Provider | None = provider
        self.sections = tuple(sections)
        self._homes: dict[str, Section] = {}
        keys: set[str] = set()
        for section in self.sections:
            if not isinstance(section, Section):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"cannot use {section!r:.60} as a section: it is {a_type(section)}; give a Section")
            if section.key in keys:
                raise ValueError(f"cannot have two sections with the key {section.key!r}; give one of them another key")
            keys.add(section.key)
            for tool in section.tools:
                self._add(tool, section)
        # One toolset for each filesystem, so that each call benefits from what earlier ones have read; see `toolset`.
        self._toolsets: dict[str | None, Toolset] = {}
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<Prompt {self.key!r}: {', '.join(section.key for section in self.sections)}>"

    def _add(self, tool: Tool, section: Section) -> None:
        other = self._homes.get(tool.name)
        if other is not None:
            where = "twice" if other is section else f"and the section {other.key!r} too"
            raise ValueError(
                f"cannot provide the tool {tool.name!r} in the section {section.key!r} {where}: a call names the tool "
                f"alone; give one of them another name, or leave it out with tools=..."
            )
        self._homes[tool.name] = section

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of all sections, in their order."""
        return tuple(tool for section in self.sections for tool in section.tools)

    def render(self) -> RenderedPrompt:
        """Return the text of all sections with their tools."""
        return RenderedPrompt("\n".join(section.render() for section in self.sections), self.tools, self.provider)

    def section_of(self, name: str) -> Section | None:
        """Find the section that provides a tool; `None` if there is no such tool."""
        # A runtime may pass on something that is not a name; the toolset answers that.
        return self._homes.get(name) if isinstance(name, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]

    def filesystem(self) -> Filesystem | None:
        """The prompt's filesystem: that of the first section that has one."""
        home = self._first()
        return None if home is None else home.filesystem

    def toolset(self, name: str, session: Session) -> Toolset:
        """Return the toolset that a tool is called through; for an unknown name, one whose answer lists the tools.

        All tools on the same filesystem have the same toolset, as long as the session is the same.
        """
        home = self._home_of(name)
        key = None if home is None else home.key
        with self._lock:
            found = self._toolsets.get(key)
            if found is None or found.session is not session:
                found = self._toolsets[key] = self._open(home, session)
        return found

    def _first(self) -> FilesystemSection | None:
        return next((section for section in self.sections if isinstance(section, FilesystemSection)), None)

    def _home_of(self, name: str) -> FilesystemSection | None:
        section = self.section_of(name)
        return section if isinstance(section, FilesystemSection) else self._first()

    def _open(self, home: FilesystemSection | None, session: Session) -> Toolset:
        if home is None:
            return Toolset(session, tools=map(_without_filesystem, self.tools), provider=self.provider)
        # This toolset has all tools, so that the answer to a wrong name can list them; each is called through its own
        # toolset.
        return Toolset(
            session,
            home.filesystem,
            tools=self.tools,
            capability=home.capability,
            policy=home.policy,
            limits=home.limits,
            provider=self.provider,
        )


def _without_filesystem(tool: Tool) -> Tool:
    """Return a tool whose handler gets no filesystem, not even the session's files in memory."""

    def call(params: object, *, context: ToolContext) -> ToolResult[object]:
        handler = cast("Callable[..., ToolResult[object]]", tool.handler)
        return handler(params, context=evolve(context, filesystem=None))

    async def acall(params: object, *, context: ToolContext) -> ToolResult[object]:
        handler = cast("Callable[..., Awaitable[ToolResult[object]]]", tool.handler)
        return await handler(params, context=evolve(context, filesystem=None))

    return evolve(tool, handler=acall if tool.is_async else call)


def dispatch_tool_call(
    prompt: Prompt,
    name: str,
    arguments: Mapping[str, object] | str | bytes,
    *,
    session: Session,
    call_id: str | None = None,
    caller: str | None = None,
    adapter: object = None,
    deadline: int | None = None,
    timeout: float | None = None,
    budget_tracker: object = None,
) -> ToolResult[object]:
    """Call one of a prompt's tools, on the filesystem of the section that provides it.

    A section without a filesystem uses the prompt's; if there is none, handlers that need one fail. The handler finds
    the prompt, the rendered prompt, `adapter`, `deadline` and `budget_tracker` in its context. Otherwise the call works
    like `Toolset.call`: a failure is an answer, changes nothing, and is recorded.
    """
    return prompt.toolset(name, session).call(
        name,
        arguments,
        call_id=call_id,
        caller=caller,
        deadline=deadline,
        timeout=timeout,
        prompt=prompt,
        rendered_prompt=prompt.render(),
        adapter=adapter,
        budget_tracker=budget_tracker,
    )


async def adispatch_tool_call(
    prompt: Prompt,
    name: str,
    arguments: Mapping[str, object] | str | bytes,
    *,
    session: Session,
    call_id: str | None = None,
    caller: str | None = None,
    adapter: object = None,
    deadline: int | None = None,
    timeout: float | None = None,
    budget_tracker: object = None,
) -> ToolResult[object]:
    """Make a call concurrently with others, as `Toolset.acall` does; see `dispatch_tool_call`."""
    return await prompt.toolset(name, session).acall(
        name,
        arguments,
        call_id=call_id,
        caller=caller,
        deadline=deadline,
        timeout=timeout,
        prompt=prompt,
        rendered_prompt=prompt.render(),
        adapter=adapter,
        budget_tracker=budget_tracker,
    )
