"""The rules of a toolset for Claude Code's own tools that read files, which are not recorded as calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from errno import EACCES
from typing import Any, Literal

from weakfs.errors import fault
from weakfs.filesystem import Filesystem
from weakfs.integrations.judged_reads import Request, judged_read
from weakfs.reducers.tree.name_escaping import from_bytes
from weakfs.tools import Toolset
from weakfs.tools.permissions import check_fits_inline, read_shown
from weakfs.tools.permissions.guard import guard_of, point_of

# The operation of each tool, and the argument with its path.
READING_TOOLS: Mapping[str, tuple[Literal["read", "search"], str]] = {
    "Glob": ("search", "path"),
    "Grep": ("search", "path"),
    "LS": ("search", "path"),
    "NotebookRead": ("read", "notebook_path"),
    "Read": ("read", "file_path"),
}


def check_reading_tool(tool: str, arguments: Mapping[str, Any], directory: str, toolset: Toolset, caller: str) -> None:
    """Raise `PermissionError` if the capability or the policy of a toolset does not let a tool read what it names.

    A search is refused if rules hide any of the files, because it shows whatever it finds. Relative paths start at
    `directory`, a directory of the host.
    """
    if tool not in READING_TOOLS or (toolset.capability is None and toolset.policy is None):
        return
    operation, name = READING_TOOLS[tool]
    given = arguments.get(name)
    if not isinstance(given, str) and operation == "read":
        raise fault(
            PermissionError, EACCES, f"cannot allow {tool}: its input has no {name!r}, so the rules cannot be checked"
        )
    path = _own_path(os.path.join(directory, given if isinstance(given, str) else ""), toolset.filesystem)
    work = _check_file if operation == "read" else _check_search
    judged_read(
        toolset,
        toolset.filesystem,
        Request(tool, operation, path),
        lambda files: work(files, path),
        shown=str,
        caller=caller,
    )


def _own_path(host_path: str, files: Filesystem) -> str:
    """Return the path that rules use for a path of the host, after following its links."""
    root, real = os.path.realpath(files.root), os.path.realpath(host_path)
    if real != root and not real.startswith(f"{root.rstrip('/')}/"):
        raise fault(
            PermissionError, EACCES, f"cannot use {host_path!r}: it is outside {root!r}, to which the rules apply"
        )
    names = os.path.relpath(real, root).split("/") if real != root else []
    own, point = "/" + "/".join(from_bytes(os.fsencode(one)) for one in names), point_of(files)
    return own if point is None else point.mounted(own)


def _check_file(files: Filesystem, path: str) -> str:
    """Return the text of a file if an answer may show all of it; "" if it is not a file, which the tool will report."""
    try:
        found = read_shown(files, path)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return ""
    check_fits_inline(files, found.path, found.content)
    return found.content.decode("utf-8", "replace")


def _check_search(files: Filesystem, path: str) -> str:
    guard = guard_of(files)
    if guard is not None:
        guard.check_search()
    return ""
