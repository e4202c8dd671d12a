"""The filesystem that an agent runtime embeds: every change an event, every call undoable.

Every public name can be taken from here. Its home is imported when it is first used, so that `import weakfs`
costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weakfs.backends import *
    from weakfs.editing import *
    from weakfs.filesystem import *
    from weakfs.reducers import *
    from weakfs.search import *
    from weakfs.session import *
    from weakfs.snapshots import *
    from weakfs.testing import *
    from weakfs.tools import *
    from weakfs.tools.handlers import *

    __all__: list[str]

__version__ = "0.1.0"

# From the bottom up: whoever asks for a name of one needs those before it anyway.
_HOMES = (
    "weakfs.session",
    "weakfs.reducers",
    "weakfs.filesystem",
    "weakfs.snapshots",
    "weakfs.backends",
    "weakfs.editing",
    "weakfs.search",
    "weakfs.tools",
    "weakfs.tools.handlers",
    "weakfs.testing",
)


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted(own for home in _HOMES for own in import_module(home).__all__)
    if not name.startswith("__"):
        for home in _HOMES:
            module = import_module(home)
            if name in module.__all__:
                value = getattr(module, name)
                globals()[name] = value
                return value
    raise AttributeError(f"module 'weakfs' has no attribute {name!r}")


def __dir__() -> list[str]:
    names: list[str] = sorted(own for home in _HOMES for own in import_module(home).__all__)
    return [*globals(), *names]
