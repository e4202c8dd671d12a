"""Host paths for the paths of a filesystem whose files are in a directory."""

from __future__ import annotations

from weakfs.reducers.tree import name_escaping as names


def host_path(directory: str, path: str) -> str:
    """Return the host path for a canonical path, below the directory that is the root."""
    below = "/".join(names.to_bytes(name).decode("utf-8", "surrogateescape") for name in path.split("/") if name)
    return f"{directory}/{below}" if below else directory
