"""Host paths: the root, where its snapshots are stored by default, and paths and links that lead out of it."""

from __future__ import annotations

import os
from hashlib import sha256

from weakfs.errors import fault
from weakfs.filesystem import BaseFilesystem, paths
from weakfs.reducers.tree import name_escaping as names
from weakfs.snapshots.directory.directory import HostDirectory


def open_root(root: str) -> HostDirectory:
    """Open a host directory. Raises `ValueError` or `OSError` with a remedy if that is not possible."""
    if not root:
        raise ValueError("cannot open '': it names no directory; name one, or use '.' for the current directory")
    try:
        return HostDirectory(root)
    except FileNotFoundError as error:
        raise fault(
            FileNotFoundError,
            error.errno or 0,
            f"cannot open {root!r}: there is no such directory; create it first",
        ) from None
    except NotADirectoryError as error:
        raise fault(
            NotADirectoryError,
            error.errno or 0,
            f"cannot open {root!r}: it is not a directory; name a host directory",
        ) from None
    except PermissionError as error:
        raise fault(
            PermissionError,
            error.errno or 0,
            f"cannot open {root!r}: {error.strerror}; get permission, or name another directory",
        ) from None


def default_store(root: str) -> str:
    """Return the default folder for a root's snapshots: in the user's state directory, or else in /var/tmp."""
    own = f"{os.path.basename(root) or 'root'}-{root_folder_name(root)}"
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    for folder in (os.path.join(state, "weakfs"), f"/var/tmp/weakfs-{os.getuid()}"):
        if os.path.isabs(folder) and not is_inside(os.path.realpath(folder), root) and _can_be_made(folder):
            return os.path.join(folder, own)
    raise ValueError(
        f"cannot find a place outside {root!r} for its snapshots; name one: HostFilesystem(..., store=PATH)"
    )


def _can_be_made(folder: str) -> bool:
    """Return whether a directory is ours and writable, or can be created along with its parents."""
    if os.path.lexists(folder) and os.lstat(folder).st_uid != os.getuid():
        # Another user created it first, in a world-writable directory.
        return False
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def root_folder_name(root: str) -> str:
    """Return the name that identifies a root, in the names of its journals and of its default store."""
    return sha256(os.fsencode(root)).hexdigest()[:16]


def is_inside(path: str, root: str) -> bool:
    """Return whether a path is that of a directory or below it; both must be real paths."""
    return path == root or path.startswith(root.rstrip("/") + "/")


class HostPaths(BaseFilesystem):
    """Paths below a root, which may begin with the root's own path, and links, whose targets are host paths."""

    __slots__ = ("_prefixes",)

    # Prefixes of host paths below the root, one for each spelling of the root.
    _prefixes: tuple[str, ...]

    @property
    def root(self) -> str:
        """The root, as a path without links."""
        raise NotImplementedError

    def _parse(self, path: str | os.PathLike[str]) -> paths.Parsed:
        text = os.fspath(path) if isinstance(path, os.PathLike) else path
        below = self._below_host_root(text) if isinstance(text, str) else None
        return paths.parse(text if below is None else below)

    def _below_host_root(self, path: str) -> str | None:
        for prefix in self._prefixes:
            if path.startswith(prefix) or path == prefix[:-1]:
                return path[len(prefix) - 1 :] or "/"
        return None

    def _climb(self, done: list[str], path: str) -> None:
        if done and done[-1] != "..":
            done.pop()
        elif self.follow_symlinks == "allow":
            done.append("..")
        else:
            raise self._outside(path)

    def _from_the_top(self, target: str, path: str) -> tuple[list[str], str]:
        # A link's target means the same here as for other programs: a host path.
        top = "/".join(names.from_bytes(os.fsencode(part)) for part in self.root.split("/"))
        if target == top or target.startswith(top.rstrip("/") + "/"):
            return [], target[len(top) :]
        if self.follow_symlinks != "allow":
            raise self._outside(path)
        return [".."] * len(paths.parse(top)[1]), target
