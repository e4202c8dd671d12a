"""Restricting a filesystem to what a capability and a policy allow, after checking that both fit it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from weakfs.filesystem import BaseFilesystem, Filesystem
from weakfs.filesystem.paths import is_within
from weakfs.messages import a_type
from weakfs.search import GlobState, compile_glob
from weakfs.search.glob_syntax import expand
from weakfs.tools.permissions.capability import Capability
from weakfs.tools.permissions.decisions import Access
from weakfs.tools.permissions.guarded_filesystem import GuardedFilesystem
from weakfs.tools.permissions.operations import Operation
from weakfs.tools.permissions.rules import PathPolicy

if TYPE_CHECKING:
    from weakfs.backends.mounted.mount_point import MountPoint

NO_LIMITS = Capability()
NO_RULES = PathPolicy()


def restricted(
    filesystem: Filesystem,
    point: MountPoint | None,
    capability: Capability | None,
    policy: PathPolicy | None,
    operation: Operation | None,
) -> GuardedFilesystem:
    """Return a filesystem with checks for one tool call; `point` is where its files are mounted, if they are.

    Raises `TypeError` if the filesystem cannot be guarded because it does not extend `BaseFilesystem`, and `ValueError`
    if a pattern or root cannot match any of its files.
    """
    for name, given, kind in (("Capability", capability, Capability), ("Policy", policy, PathPolicy)):
        if given is not None and not isinstance(given, kind):
            raise TypeError(f"{name.lower()} is {a_type(given)}; give a {name}, or leave it out")
    if not isinstance(filesystem, BaseFilesystem):
        raise TypeError(
            f"cannot guard {a_type(filesystem)}: a capability and a policy need to see each path as it is "
            f"resolved; extend weakfs.filesystem.BaseFilesystem"
        )
    if point is not None:
        _check_mounted(point, _patterns(policy), () if capability is None else capability.fs_roots or (), filesystem)
    elif (root := filesystem.root) != "/":
        for pattern in _patterns(policy):
            if is_within(pattern, root):
                raise ValueError(
                    f"cannot use the policy: its pattern {pattern!r} is a host path and would match nothing; "
                    f"give it relative to the filesystem's root, which is {root!r}"
                )
    capability = NO_LIMITS if capability is None else capability
    roots = capability.fs_roots
    places = None if roots is None else tuple(filesystem._parse(root)[0] for root in roots)
    access = Access(capability, NO_RULES if policy is None else policy, operation, places)
    return GuardedFilesystem(cast(Filesystem, filesystem), access)


def _patterns(policy: PathPolicy | None) -> tuple[str, ...]:
    return () if policy is None else tuple(pattern for rule in policy.rules for pattern in rule.paths)


def _check_mounted(
    point: MountPoint, patterns: Iterable[str], roots: Iterable[str], filesystem: BaseFilesystem
) -> None:
    """Raise `ValueError` for a pattern or root that cannot match a mounted file, which is surely a mistake."""
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
                f"cannot use the capability: its root {root!r} contains none of the files, which are below "
                f"{point.path!r}; give a path there, such as {point.mounted(path)!r}"
            )


def _can_match(pattern: str, point: MountPoint) -> bool:
    """Return whether a pattern without braces can match a mounted file or one of its parent directories."""
    if pattern == "/":
        return True
    state: GlobState | None = compile_glob(pattern, hidden=True).start("/")
    for name in point.segments:
        if state is None or state.matches(name, True) or state.matches(name, False):
            break
        state = state.enter(name)
    return state is not None
