"""Mounts: host trees copied into memory with one walk, one event, and a report of what was left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from errno import EEXIST, ENOENT, ENOTDIR

from attrs import field

from weakfs.class_decorators import frozen
from weakfs.errors import fault
from weakfs.filesystem import Limits, SymlinkPolicy, normalize
from weakfs.filesystem.paths import join
from weakfs.filesystem.primitives import check_symlink_policy
from weakfs.messages import a_type
from weakfs.platforms import require_linux
from weakfs.reducers import FileTree, MountReport, TreeMounted
from weakfs.reducers.apply import segments_of
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.node import EMPTY_TREE, find, put
from weakfs.search import compile_glob
from weakfs.session import Session
from weakfs.snapshots.scan.host_import import Selection, import_tree


def _host_path(path: str | os.PathLike[str]) -> str:
    if not isinstance(path, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"host_path is {path!r:.60}; pass the path of a host directory")
    return os.fspath(path)


def _patterns(patterns: str | Iterable[str]) -> tuple[str, ...]:
    given = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    for pattern in given:
        if not isinstance(pattern, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"cannot use {pattern!r:.60} as a glob pattern: it is {a_type(pattern)}; pass text")
    return given


def _symlink_policy(instance: object, attribute: object, value: SymlinkPolicy) -> None:
    check_symlink_policy(value)


def _size(instance: object, attribute: object, value: int | None) -> None:
    if value is not None and (type(value) is not int or value < 0):
        raise ValueError(f"max_bytes is {value!r}; pass a number of bytes, or None for no limit")


@frozen
class HostMount:
    """A host tree to be copied into memory.

    `include` and `exclude` are globs relative to `host_path` (`*.py`, `docs/**`, `build/`); a directory that `exclude`
    matches is left out with everything in it. `max_bytes` limits the total size of contents; files that do not fit are
    left out and reported. `follow_symlinks` is "deny" (copy links as links), "within_root_only" (copy the targets of
    links that point inside `host_path`), or "allow" (copy any target).
    """

    host_path: str = field(converter=_host_path)
    mount_path: str = "/"
    include: tuple[str, ...] = field(default=(), converter=_patterns)
    exclude: tuple[str, ...] = field(default=(), converter=_patterns)
    max_bytes: int | None = field(default=None, validator=_size)
    follow_symlinks: SymlinkPolicy = field(default="deny", validator=_symlink_policy)


Progress = Callable[[str, int], object]


def checked_mounts(mounts: Sequence[HostMount]) -> tuple[HostMount, ...]:
    """Return the mounts. Raises `TypeError` if one is not a `HostMount`, and `ValueError` if two are at one path."""
    if isinstance(mounts, HostMount | str | os.PathLike):
        shown = "mount" if isinstance(mounts, HostMount) else f"HostMount({os.fspath(mounts)!r})"
        raise TypeError(f"mounts is {a_type(mounts)}; pass a list, mounts=[{shown}]")
    mounts = tuple(mounts)
    for wanted in mounts:
        if not isinstance(wanted, HostMount):  # pyright: ignore[reportUnnecessaryIsInstance]
            shown = f"HostMount({os.fspath(wanted)!r})" if isinstance(wanted, str | os.PathLike) else "a HostMount"
            raise TypeError(f"cannot mount {wanted!r}: it is {a_type(wanted)}; pass {shown}")
    places = [normalize(wanted.mount_path) for wanted in mounts]
    for place in places:
        if places.count(place) > 1:
            raise ValueError(f"cannot mount two host trees at {place!r}; give each its own path")
    return mounts


def mount(
    session: Session, wanted: HostMount, limits: Limits, *, on_file: Progress | None = None
) -> MountReport | None:
    """Copy a host tree into a session's files as one event, and report what was left out and why.

    Returns `None` if the session already holds a mount at that path. Raises `FileNotFoundError` or
    `NotADirectoryError` if there is no such host directory, `FileExistsError` if the mount path is anything other than
    an empty directory, and `OSError` if the mount as a whole exceeds the limits, or (ENOTSUP) on a system other than
    Linux.
    """
    source = os.path.realpath(wanted.host_path)
    path = normalize(wanted.mount_path)
    name = "/".join(names.from_bytes(os.fsencode(part)) for part in source.split("/"))
    # The host path is not compared: a resumed session may have made the mount on another machine or from another place.
    if any(report.path == path for report in session[MountReport].all()):
        return None
    segments = segments_of(path)
    selection = Selection(
        tuple(compile_glob(pattern, hidden=True) for pattern in wanted.include),
        tuple(compile_glob(pattern, hidden=True) for pattern in wanted.exclude),
        wanted.max_bytes,
        limits,
        wanted.follow_symlinks,
    )
    held = session[FileTree].latest() or EMPTY_TREE
    limits.check_path(path, segments)
    with_parents = put(held, segments, EMPTY_TREE, 0) if segments else held
    more = with_parents.node_count - held.node_count
    limits.check_quota(path, size=0, more_size=0, nodes=held.node_count, more_nodes=more)
    if not os.path.exists(source):
        raise fault(
            FileNotFoundError,
            ENOENT,
            f"cannot mount {wanted.host_path!r}: there is no such directory; name a host directory",
        )
    if not os.path.isdir(source):
        raise fault(
            NotADirectoryError,
            ENOTDIR,
            f"cannot mount {wanted.host_path!r}: it is not a directory; name a host directory",
        )
    require_linux(
        f"mount {wanted.host_path!r}", "write the files to the filesystem, or import_bytes a tar archive of them"
    )
    found = import_tree(source, selection, prefix_depth=len(segments), held=with_parents, on_file=on_file)
    skipped = tuple((join(path, name[1:]), reason) for name, reason in found.skipped)
    with session.lock:
        _check_place(session[FileTree].latest() or EMPTY_TREE, path, segments)
        session.dispatch(TreeMounted(path, name, found.tree, skipped, session.now()))
    session._notify()
    return session[MountReport].all()[-1]


def _check_place(tree: FileTree, path: str, segments: tuple[str, ...]) -> None:
    for depth in range(len(segments) + 1):
        node = find(tree, segments[:depth])
        if node is None:
            return
        if type(node) is not FileTree or (depth == len(segments) and node.node_count):
            raise fault(
                FileExistsError,
                EEXIST,
                f"cannot mount at {path!r}: something is already there; mount at an unused path",
            )
