"""The filesystem that an agent runtime embeds: every change an event, every call undoable.

Names are imported from their homes when they are first used, so that `import weakfs` costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weakfs.backends import HostMount as HostMount
    from weakfs.backends import InMemoryFilesystem as InMemoryFilesystem

__version__ = "0.1.0"

_HOMES = {
    "weakfs.backends": ("HostMount", "InMemoryFilesystem"),
    "weakfs.filesystem": ("Filesystem","Limits"),
    "weakfs.session": ("Session", "Registry"),
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'weakfs' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
