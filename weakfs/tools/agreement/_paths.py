"""Paths of the machine that recorded a session, and where they are below its directory."""

from __future__ import annotations

import posixpath
import re

from weakfs.tools.transcripts import Source

_DRIVE = re.compile(r"^(?:[A-Za-z]:(?=[\\/]|$)|\\\\)")
# How a shell on Windows writes a drive.
_SHELL_DRIVE = re.compile(r"^/(?:mnt/|cygdrive/)?([A-Za-z])(?=/|$)")
# Directories that macOS also knows by a shorter name.
_PRIVATE = re.compile(r"^/private(?=/(?:tmp|var|etc)(?:/|$))")
# How a backslash is written in a name of ours.
_BACKSLASH = "\uf75c"


class Outside(ValueError):
    """A path that does not lie below the session's directory."""


def below_root(path: str, source: Source, *, workdir: str | None = None) -> str:
    """Give the canonical path of ours for a recorded one; `Outside` if it has none.

    Relative paths start in `workdir`, else where the session was at that moment.
    """
    if "\0" in path:
        raise Outside("the path holds a NUL")
    root = source.root or "/"
    is_windows = bool(_DRIVE.match(root))
    base = _plain(source.cwd or root, is_windows)
    if workdir:
        base = _absolute(workdir, base, is_windows)
    found = _absolute(path, base, is_windows)
    top = posixpath.normpath(_plain(root, is_windows))
    inside = _inside(found, top, fold=is_windows)
    if inside is None:
        raise Outside(f"{path!r} lies outside the session's directory {root!r}")
    return inside


def _absolute(path: str, base: str, is_windows: bool) -> str:
    if path.startswith("~"):
        raise Outside(f"{path!r} lies in a home directory, which is not recorded")
    return posixpath.normpath(posixpath.join(base, _plain(path, is_windows)))


def _plain(path: str, is_windows: bool) -> str:
    """Give a path with `/` only, and one name for what has two."""
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
    # Where letters fold to several, the parts are counted instead.
    return "/" + "/".join(path.split("/")[len(top.rstrip("/").split("/")) :])
