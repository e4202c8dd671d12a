"""Mapping of paths on the recording machine to paths below the session's directory."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache

from weakfs.transcripts import Source

_DRIVE = re.compile(r"^(?:[A-Za-z]:(?=[\\/]|$)|\\\\)")
# A drive as Unix-like shells on Windows write it.
_SHELL_DRIVE = re.compile(r"^/(?:mnt/|cygdrive/)?([A-Za-z])(?=/|$)")
# Directories that also have a shorter name on macOS.
_PRIVATE = re.compile(r"^/private(?=/(?:tmp|var|etc)(?:/|$))")
# How a backslash is represented in one of our names.
_BACKSLASH = "\uf75c"


class Outside(ValueError):
    """A path outside the session's directory."""


# The directory in which we keep working trees next to the session's directory.
WORKTREES = "/.worktrees"
# The name of the directory in which programs keep working trees.
_WORKTREE_PARENTS = frozenset({"worktrees", ".worktrees", ".claude-worktrees"})


def below_root(path: str, source: Source, *, workdir: str | None = None) -> str:
    """Return our canonical path for a recorded one; raise `Outside` if it has none.

    The session's directory is `/`. Another working tree of the session's repository is `/.worktrees/NAME`, where NAME
    is the name of its directory: `/x/repo-feature/a` is `/.worktrees/repo-feature/a` in a session that began in
    `/x/repo`. A working tree inside the session's directory keeps its place there. If two have the same name, the
    second is NAME-2. Relative paths start in `workdir`, or else in the session's current directory at that moment.
    """
    if "\0" in path:
        raise Outside("the path contains a NUL")
    root = source.root or "/"
    is_windows = bool(_DRIVE.match(root))
    base = _plain(source.cwd or root, is_windows)
    if workdir:
        base = _absolute(workdir, base, is_windows)
    found = _absolute(path, base, is_windows)
    # The deepest directory wins: a working tree may be inside another.
    for top, ours in sorted(_roots(source), key=lambda pair: len(pair[0]), reverse=True):
        inside = _inside(found, top, fold=is_windows)
        if inside is not None:
            return ours + inside if inside != "/" else ours or "/"
    raise Outside(f"{path!r} is outside the session's directory {root!r}")


@lru_cache(maxsize=64)
def _roots(source: Source) -> tuple[tuple[str, str], ...]:
    """Return the directories of a session, each with its path in ours: "" for the root."""
    root = source.root or "/"
    is_windows = bool(_DRIVE.match(root))
    top = posixpath.normpath(_plain(root, is_windows))
    roots = {top: ""}
    visited = [_normal(one, top, is_windows) for one in source.directories]
    made = [_normal(one, top, is_windows) for one in source.worktrees]
    candidates = [*filter(None, made), *filter(None, (_worktree(one, top) for one in visited if one is not None))]
    # The names of working trees inside the session's directory.
    taken = {inside for one in (*made, *visited) if one is not None and (inside := _inside(one, top, fold=is_windows))}
    for one in candidates:
        if any(_inside(one, known, fold=is_windows) is not None for known in roots):
            continue
        name = place = f"{WORKTREES}/{posixpath.basename(one)}"
        number = 1
        while place in roots.values() or place in taken:
            number += 1
            place = f"{name}-{number}"
        roots[one] = place
    return tuple(roots.items())


def _normal(path: str, top: str, is_windows: bool) -> str | None:
    try:
        found = _absolute(path, top, is_windows)
    except Outside:
        return None
    return found if found != "/" and "\0" not in found else None


def _worktree(directory: str, top: str) -> str | None:
    """Return the working tree that contains a directory of the session; `None` if it is unknown.

    Working trees are directories next to the session's own, directories where programs keep working trees, and the
    directory that contains the session's own as a working tree. Any other directory, such as `/tmp`, is outside.
    """
    if top.startswith(directory.rstrip("/") + "/"):
        between = top[len(directory) :].strip("/").split("/")[:-1]
        return directory if _WORKTREE_PARENTS.intersection(between) else None
    parent, name = posixpath.split(top)
    prefix = parent.rstrip("/") + "/"
    if directory.startswith(prefix):
        sibling = directory[len(prefix) :].partition("/")[0]
        is_related = sibling.startswith(name) or name.startswith(sibling)
        if is_related or (parent != "/" and not sibling.startswith(".")):
            return prefix + sibling
    return directory if _WORKTREE_PARENTS.intersection(directory.split("/")[:-1]) else None


def _absolute(path: str, base: str, is_windows: bool) -> str:
    if path.startswith("~"):
        raise Outside(f"{path!r} is in a home directory, which is not recorded")
    return posixpath.normpath(posixpath.join(base, _plain(path, is_windows)))


def _plain(path: str, is_windows: bool) -> str:
    """Return a path with `/` as its only separator, and one spelling for names that have two."""
    if is_windows:
        path = path.replace("\\", "/")
        shell = _SHELL_DRIVE.match(path)
        if shell is not None:
            path = f"{shell[1]}:{path[shell.end() :]}"
        return f"/{path[0].upper()}{path[1:]}" if path[1:2] == ":" else path
    return _PRIVATE.sub("", path.replace("\\", _BACKSLASH))


def _inside(path: str, top: str, *, fold: bool) -> str | None:
    one, other = (path.casefold(), top.casefold()) if fold else (path, top)
    if one == other:
        return "/"
    prefix = other.rstrip("/") + "/"
    if not one.startswith(prefix):
        return None
    # Case folding may change the number of letters, so count path segments instead.
    return "/" + "/".join(path.split("/")[len(top.rstrip("/").split("/")) :])
