"""The filesystem that an agent runtime embeds: every change is an event, every call can be undone.

The names that most programs need are here; the packages below contain the rest:

    weakfs.session      events, records, slices, reducers, snapshots
    weakfs.storage      engines that keep keys and event streams
    weakfs.filesystem   the interface of filesystems and the values that it returns
    weakfs.backends     memory, host, container, overlay, storage, mock
    weakfs.reducers     the events of files, and the immutable tree that they are reduced into
    weakfs.snapshots    the store of host snapshots, scans, tar archives
    weakfs.editing      replacing text, and patches
    weakfs.search       glob patterns and regular expressions
    weakfs.tools        tools, toolsets, capabilities, policies; the handlers in weakfs.tools.handlers
    weakfs.processes    running commands in a sandbox, and background processes
    weakfs.history      blame, timeline, calls, SQL queries, git export and import, retention, forgetting
    weakfs.transcripts  recorded sessions of other programs
    weakfs.testing      the conformance suites for filesystems and storage, and a stub context for handlers

Names are imported from their modules when they are first used, so that `import weakfs` is fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weakfs.backends import (
        ContainerFilesystem,
        HostFilesystem,
        HostMount,
        InMemoryFilesystem,
        MountedFilesystem,
        OverlayFilesystem,
    )
    from weakfs.composition_root import Registry, Session, StorageFilesystem
    from weakfs.errors import WeakfsError
    from weakfs.filesystem import Filesystem, Limits
    from weakfs.session import (
        MergeConflict,
        MissingBlob,
        Record,
        RollbackIncomplete,
        SessionClosed,
        SessionError,
        SessionFileError,
        SessionSnapshot,
        event,
        reducer,
    )
    from weakfs.tools import (
        DEFAULT_TOOLS,
        Capability,
        Policy,
        PolicyRule,
        Tool,
        ToolContext,
        ToolResult,
        Toolset,
        param,
    )

__version__ = "0.1.0"

__all__ = [
    "DEFAULT_TOOLS",
    "Capability",
    "ContainerFilesystem",
    "Filesystem",
    "HostFilesystem",
    "HostMount",
    "InMemoryFilesystem",
    "Limits",
    "MergeConflict",
    "MissingBlob",
    "MountedFilesystem",
    "OverlayFilesystem",
    "Policy",
    "PolicyRule",
    "Record",
    "Registry",
    "RollbackIncomplete",
    "Session",
    "SessionClosed",
    "SessionError",
    "SessionFileError",
    "SessionSnapshot",
    "StorageFilesystem",
    "Tool",
    "ToolContext",
    "ToolResult",
    "Toolset",
    "WeakfsError",
    "event",
    "param",
    "reducer",
]

_NAMES = {
    "weakfs.backends": (
        "ContainerFilesystem",
        "HostFilesystem",
        "HostMount",
        "InMemoryFilesystem",
        "MountedFilesystem",
        "OverlayFilesystem",
    ),
    "weakfs.composition_root": ("Registry", "Session", "StorageFilesystem"),
    "weakfs.errors": ("WeakfsError",),
    "weakfs.filesystem": ("Filesystem", "Limits"),
    "weakfs.session": (
        "MergeConflict",
        "MissingBlob",
        "Record",
        "RollbackIncomplete",
        "SessionClosed",
        "SessionError",
        "SessionFileError",
        "SessionSnapshot",
        "event",
        "reducer",
    ),
    "weakfs.tools": (
        "DEFAULT_TOOLS",
        "Capability",
        "Policy",
        "PolicyRule",
        "Tool",
        "ToolContext",
        "ToolResult",
        "Toolset",
        "param",
    ),
}
_HOME_OF = {name: home for home, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    home = _HOME_OF.get(name)
    if home is None:
        from weakfs._name_hints import unknown_name

        raise unknown_name(name, is_import=sys._getframe(1).f_code.co_name == "_handle_fromlist")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
