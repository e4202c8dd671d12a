"""Names that a package imports from their modules when they are first used, so that a process pays for what it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, from the names of each of its modules, separated by spaces.

    No name may be that of a module in the package: importing that module would take its place.
    """
    home_of = {name: module for module, names in modules.items() for name in names.split()}

    def value_of(name: str) -> object:
        module = home_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(home_of)

    return value_of, names
