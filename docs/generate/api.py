"""A package's public names as Markdown, for the plain copies of the pages that Sphinx generates from docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import ForwardRef

from attrs import NOTHING

from weakfs.filesystem import FilesystemPrimitives
from weakfs.tools import Tool

# The members of these classes have entries of their own.
END = {"BaseFilesystem", "FilesystemPrimitives", "Receipt"}

# The module prefixes in the text of an alias.
_MODULES = re.compile(r"\b(?:\w+\.)+(?=\w)")


def implements_a_primitive(name: str, member: object) -> bool:
    """Return whether a method implements a primitive of filesystems and has no docstring of its own."""
    return name in vars(FilesystemPrimitives) and inspect.isfunction(member) and member.__doc__ is None


def page(package: str) -> str:
    """Return the documentation of everything that a package exports."""
    module = import_module(package)
    lines = [inspect.getdoc(module) or "", ""]
    for name in getattr(module, "__all__", ()):
        lines += _entry(f"{package}.{name}", getattr(module, name), "##")
    return "\n".join(lines)


def tools_in(value: object) -> str | None:
    """Return the description of a constant that is a tool or a tuple of tools; `None` for any other value."""
    if isinstance(value, Tool):
        return f"The tool `{value.name}`, with receipts of class `{value.receipt.__name__}`."
    if isinstance(value, tuple) and value and all(isinstance(tool, Tool) for tool in value):
        return f"The tools {', '.join(f'`{tool.name}`' for tool in value)}, in this order."
    return None


def _entry(name: str, value: object, level: str) -> Iterator[str]:
    yield f"{level} `{name}{_signature(value)}`"
    yield ""
    documented = inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, property)
    doc = inspect.getdoc(value) if documented else tools_in(value)
    if doc:
        yield from (doc, "")
    elif type(value).__module__ == "typing":
        yield from (f"Alias of `{_MODULES.sub('', str(value))}`.", "")
    if inspect.isclass(value):
        for own, member in _members(value).items():
            yield from _entry(own, member, level + "#")


def _members(kind: type) -> dict[str, object]:
    """Return the documented methods and properties of a class, with those inherited from private classes."""
    found: dict[str, object] = {}
    for base in kind.__mro__:
        if base is not kind and (not base.__module__.startswith("weakfs") or base.__name__ in END):
            break
        for name, member in vars(base).items():
            is_method = inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)
            # An overloaded method of a protocol is documented where it is implemented.
            if implements_a_primitive(name, member) or getattr(member, "__module__", None) == "typing":
                continue
            if is_method and not name.startswith("_") and name not in found:
                value = member if isinstance(member, property) else getattr(kind, name)
                if inspect.getdoc(value):
                    found[name] = value
    return found


def _signature(value: object) -> str:
    if not inspect.isclass(value) and not inspect.isroutine(value):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = [
        parameter.replace(
            default=_shown(parameter.default),
            annotation=_unquoted(parameter.annotation),
        )
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=_unquoted(signature.return_annotation)))


def _shown(default: object) -> object:
    if default is inspect.Parameter.empty:
        return default
    if inspect.isclass(default) or inspect.isroutine(default):
        return _Source(default.__name__)
    return _Source("...") if default is NOTHING or len(repr(default)) > 60 else default


def _unquoted(annotation: object) -> object:
    if isinstance(annotation, ForwardRef):
        return _Source(annotation.__forward_arg__)
    return _Source(annotation) if isinstance(annotation, str) else annotation


class _Source:
    """Source text in a signature, shown as it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text
