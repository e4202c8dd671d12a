"""Differences between providers: the tools that their models know, names and defaults of arguments, hints.

The tables apply to the built-in tools. A custom tool is offered to every model unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import cast

from weakfs.class_decorators import frozen
from weakfs.tools.defaults import DEFAULT_TOOLS
from weakfs.tools.tool import Tool

# Two tools change a part of a file. Each model was trained with one of them, and does worse if it has both.
LEFT_OUT: dict[str, dict[str, str]] = {
    "openai": {"edit_file": "apply_patch"},
    "anthropic": {"apply_patch": "edit_file"},
    "gemini": {"apply_patch": "edit_file"},
}

# The argument names of the coding tools that models were trained with; MCP has no names of its own.
_FILE = {tool: {"path": "file_path"} for tool in ("read_file", "write_file", "edit_file")}
ARGUMENT_NAMES: dict[str, dict[str, dict[str, str]]] = {"openai": _FILE, "anthropic": _FILE, "gemini": _FILE}


# A provider's defaults that differ from the tool's own. Images need a runtime that sends the content of results: one
# that names its provider is assumed to do so, and one that sends only messages would lose them.
_IMAGES: dict[str, dict[str, object]] = {"read_file": {"images": True}}
DEFAULTS: dict[str, dict[str, dict[str, object]]] = {
    "openai": _IMAGES,
    "anthropic": {"read_file": {"images": True, "line_numbers": True}},
    "gemini": _IMAGES,
    "mcp": _IMAGES,
}

# Parameters that are not shown to a provider's models: the models use -A and -B, and do not need -C.
PARAMETERS_LEFT_OUT: dict[str, dict[str, tuple[str, ...]]] = {
    "openai": {"grep": ("context",)},
    "mcp": {"grep": ("context",)},
}


@frozen(kw_only=True)
class Hints:
    """MCP's `annotations` of a tool, for people who decide which calls to allow.

    `destructive` means that something may be lost, `idempotent` that repeating a call changes nothing more,
    `open_world` that it affects more than the files.
    """

    title: str
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False


HINTS: dict[str, Hints] = {
    "ls": Hints(title="List directory", idempotent=True),
    "read_file": Hints(title="Read file", idempotent=True),
    "write_file": Hints(title="Write file", destructive=True),
    "edit_file": Hints(title="Edit file", destructive=True),
    "apply_patch": Hints(title="Apply patch", destructive=True),
    "glob": Hints(title="Find files", idempotent=True),
    "grep": Hints(title="Search in files", idempotent=True),
    "rm": Hints(title="Remove", destructive=True, idempotent=True),
    "mkdir": Hints(title="Make directory", idempotent=True),
    "mv": Hints(title="Move", destructive=True),
    "cp": Hints(title="Copy", destructive=True, idempotent=True),
    "stat": Hints(title="File details", idempotent=True),
    "exists": Hints(title="Check existence", idempotent=True),
    "shell": Hints(title="Run command", destructive=True, open_world=True),
}

# The titles of tools that are not offered by default, where the name alone would not make a good one.
TITLES = {
    "process_start": "Start process",
    "process_output": "Read process output",
    "process_input": "Write to process",
    "process_signal": "Signal process",
    "process_wait": "Wait for process",
    "process_list": "List processes",
}


@cache
def _own_params() -> frozenset[type]:
    return frozenset(tool.params for tool in DEFAULT_TOOLS)


def _is_own(tool: Tool) -> bool:
    """Return whether a tool is a built-in one, possibly with other options."""
    return tool.params in _own_params()


def offered(tools: Sequence[Tool], provider: str) -> list[Tool]:
    """Return the tools that are offered to a provider's models, in their order.

    If there are both `edit_file` and `apply_patch`, one of them is left out; a toolset with only one keeps it.
    """
    left_out, there = LEFT_OUT.get(provider, {}), {tool.name for tool in tools}
    return [tool for tool in tools if not (_is_own(tool) and left_out.get(tool.name) in there)]


def names_of(tool: Tool, provider: str) -> Mapping[str, str]:
    """Return the provider's names of a tool's parameters; each is an alias that calls of the tool accept."""
    names = ARGUMENT_NAMES.get(provider, {}).get(tool.name, {}) if _is_own(tool) else {}
    return {name: other for name, other in names.items() if tool.aliases.get(other) == name}


def left_out_of(tool: Tool, provider: str) -> tuple[str, ...]:
    """Return the parameters of a tool that are hidden from a provider's models."""
    return PARAMETERS_LEFT_OUT.get(provider, {}).get(tool.name, ()) if _is_own(tool) else ()


def defaults_for(tool: Tool, provider: str | None) -> Mapping[str, object]:
    """Return a provider's defaults for parameters that a call leaves out, by weakfs's own names."""
    if provider is None or not _is_own(tool):
        return {}
    return DEFAULTS.get(provider, {}).get(tool.name, {})


def with_defaults(tool: Tool, arguments: object, provider: str | None) -> object:
    """Return the arguments of a call with the provider's defaults for what it leaves out."""
    defaults = defaults_for(tool, provider)
    if not defaults or not isinstance(arguments, Mapping):
        return arguments
    given = cast("Mapping[str, object]", arguments)
    named = {tool.aliases.get(name, name) for name, value in given.items() if value is not None}
    left_out = {name: value for name, value in defaults.items() if name not in named}
    return {**{name: value for name, value in given.items() if name not in left_out}, **left_out}


def title_of(tool: Tool) -> str:
    """Return the title that people see: that of a built-in tool, or else the name in words."""
    hints = hints_of(tool)
    words = tool.name.replace("_", " ").replace("-", " ").capitalize()
    return TITLES.get(tool.name, words) if hints is None else hints.title


def hints_of(tool: Tool) -> Hints | None:
    """Return the hints of a built-in tool; `None` for a custom one."""
    return HINTS.get(tool.name) if _is_own(tool) else None
