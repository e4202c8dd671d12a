"""A package's public names as Markdown, for the plain copies of the pages that Sphinx generates from docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module

from weakfs.filesystem import FilesystemPrimitives

# Their members are in their own entries.
END = {"BaseFilesystem", "FilesystemPrimitives", "Receipt"}


def implements_a_primitive(name: str, member: object) -> bool:
    """Return whether a method implements a primitive of filesystems and says no more of it."""
    return name in vars(FilesystemPrimitives) and inspect.isfunction(member) and member.__doc__ is None


def page(package: str) -> str:
    """Return the documentation of everything that a package exports."""
    module = import_module(package)
    lines = [inspect.getdoc(module) or "", ""]
    for name in getattr(module, "__all__", ()):
        lines += _entry(f"{package}.{name}", getattr(module, name), "##")
    return "\n".join(lines)


def _entry(name: str, value: object, level: str) -> Iterator[str]:
    yield f"{level} `{name}{_signature(value)}`"
    yield ""
    documented = inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, property)
    doc = inspect.getdoc(value) if documented else None
    if doc:
        yield from (doc, "")
    if inspect.isclass(value):
        for own, member in _members(value).items():
            yield from _entry(own, member, level + "#")


def _members(kind: type) -> dict[str, object]:
    """Return the documented methods and properties of a class, with what it inherits from classes that are private."""
    found: dict[str, object] = {}
    for base in kind.__mro__:
        if base is not kind and (not base.__module__.startswith("weakfs") or base.__name__ in END):
            break
        for name, member in vars(base).items():
            is_method = inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)
            if implements_a_primitive(name, member):
                continue
            if is_method and not name.startswith("_") and name not in found:
                value = member if isinstance(member, property) else getattr(kind, name)
                if inspect.getdoc(value):
                    found[name] = value
    return found


def _signature(value: object) -> str:
    if not callable(value):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    short = [
        parameter.replace(default=_Elided()) if len(repr(parameter.default)) > 60 else parameter
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=short)).replace("'", "")


class _Elided:
    """Stands for a default that is too long to show."""

    def __repr__(self) -> str:
        return "..."
