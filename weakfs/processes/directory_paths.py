"""Paths of the host that stand for the paths of a filesystem whose files are in a directory."""

from __future__ import annotations

from weakfs.reducers.tree import name_escaping as names


def host_path(directory: str, path: str) -> str:
    """Return the host's path of a canonical one, below the directory that stands for the root."""
    below = "/".join(names.to_bytes(name).decode("utf-8", "surrogateescape") for name in path.split("/") if name)
    return f"{directory}/{below}" if below else directory
