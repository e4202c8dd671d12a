"""Names that a package imports from their modules on first use, so that a process loads only what it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package. `modules` maps each module to its names, separated by spaces.

    No name may also be the name of a module in the package, because importing that module would replace it.
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
