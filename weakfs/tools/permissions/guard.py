"""Guarding: which filesystem a call of a tool gets, and what its answer may show."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from weakfs.filesystem import BaseFilesystem, Filesystem
from weakfs.filesystem.paths import is_within
from weakfs.messages import a_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from weakfs.backends.mounted.mount_point import MountPoint
    from weakfs.search import GlobState
    from weakfs.tools.permissions.capability import Capability
    from weakfs.tools.permissions.guarded_filesystem import GuardedFilesystem
    from weakfs.tools.permissions.operations import Operation
    from weakfs.tools.permissions.rules import PathPolicy


def guarded(
    filesystem: Filesystem,
    capability: Capability | None,
    policy: PathPolicy | None,
    operation: Operation | None,
) -> Filesystem:
    """Return the filesystem for one call of a tool: `filesystem` itself, or a guard around it if it is restricted.

    Raises `TypeError` for a filesystem that cannot be guarded, which is one that does not extend `BaseFilesystem`.
    """
    if capability is None and policy is None:
        return filesystem
    # A call without permissions, such as the first of a new process, takes no time to import them.
    from weakfs.tools.permissions.capability import Capability
    from weakfs.tools.permissions.decisions import Access
    from weakfs.tools.permissions.guarded_filesystem import GuardedFilesystem
    from weakfs.tools.permissions.rules import PathPolicy

    for name, given, kind in (("Capability", capability, Capability), ("Policy", policy, PathPolicy)):
        if given is not None and not isinstance(given, kind):
            raise TypeError(f"{name.lower()} is {a_type(given)}; give a {name}, or leave it out")
    if not isinstance(filesystem, BaseFilesystem):
        raise TypeError(
            f"cannot guard {a_type(filesystem)}: a capability and a policy need to see each path as it is "
            f"resolved; extend weakfs.filesystem.BaseFilesystem"
        )
    point = point_of(filesystem)
    if point is not None:
        _check_mounted(point, _patterns(policy), () if capability is None else capability.fs_roots or (), filesystem)
    elif (root := filesystem.root) != "/":
        for pattern in _patterns(policy):
            if is_within(pattern, root):
                raise ValueError(
                    f"cannot use the policy: its pattern {pattern!r} is a path of the host and would match nothing; "
                    f"give it relative to the filesystem's root, which is {root!r}"
                )
    capability = Capability() if capability is None else capability
    roots = capability.fs_roots
    places = None if roots is None else tuple(filesystem._parse(root)[0] for root in roots)
    access = Access(capability, PathPolicy() if policy is None else policy, operation, places)
    return GuardedFilesystem(cast(Filesystem, filesystem), access)


def _patterns(policy: PathPolicy | None) -> tuple[str, ...]:
    return () if policy is None else tuple(pattern for rule in policy.rules for pattern in rule.paths)


def _check_mounted(
    point: MountPoint, patterns: Iterable[str], roots: Iterable[str], filesystem: BaseFilesystem
) -> None:
    """Raise `ValueError` for a pattern or root that no mounted file can match: it was meant to match some."""
    from weakfs.search.glob_syntax import expand

    for pattern in patterns:
        for one in expand(pattern):
            if not _can_match(one, point):
                raise ValueError(
                    f"cannot use the policy: its pattern {one!r} would match nothing, because the files are below "
                    f"{point.path!r}; include it, as in {point.mounted('/' + one.lstrip('/'))!r}"
                )
    for root in roots:
        path = filesystem._parse(root)[0]
        if point.own(path) is None and not is_within(point.path, path):
            raise ValueError(
                f"cannot use the capability: its root {root!r} holds none of the files, which are below "
                f"{point.path!r}; give a path there, such as {point.mounted(path)!r}"
            )


def _can_match(pattern: str, point: MountPoint) -> bool:
    """Return whether a pattern without braces can match a mounted file, or a directory that it is in."""
    from weakfs.search import compile_glob

    if pattern == "/":
        return True
    state: GlobState | None = compile_glob(pattern, hidden=True).start("/")
    for name in point.segments:
        if state is None or state.matches(name, True) or state.matches(name, False):
            break
        state = state.enter(name)
    return state is not None


def point_of(filesystem: object) -> MountPoint | None:
    """Return where files are mounted, if they are; also those behind a guard."""
    point: MountPoint | None = getattr(filesystem, "mount_point", None)
    return point


def may_show(filesystem: Filesystem | None, path: str) -> bool:
    """Return whether an answer may quote a file: a guard may keep it from being read, or out of answers."""
    guard = guard_of(filesystem)
    return guard is None or guard.may_show(path)


def guard_of(filesystem: Filesystem | None) -> GuardedFilesystem | None:
    """Return the filesystem if it is a guard."""
    from weakfs.tools.permissions.guarded_filesystem import GuardedFilesystem

    return filesystem if isinstance(filesystem, GuardedFilesystem) else None
