"""Guarding: which filesystem a call of a tool gets, and what its answer may show."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from weakfs.filesystem import BaseFilesystem, Filesystem
from weakfs.filesystem.paths import is_within

if TYPE_CHECKING:
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
            raise TypeError(f"{name.lower()} is a {type(given).__name__}; give a {name}, or leave it out")
    if not isinstance(filesystem, BaseFilesystem):
        raise TypeError(
            f"cannot guard a {type(filesystem).__name__}: a capability and a policy need to see each path as it is "
            f"resolved; extend weakfs.filesystem.BaseFilesystem"
        )
    for pattern in () if policy is None else (pattern for rule in policy.rules for pattern in rule.paths):
        if filesystem.root != "/" and is_within(pattern, filesystem.root):
            raise ValueError(
                f"cannot use the policy: its pattern {pattern!r} is a path of the host and would match nothing; give "
                f"it relative to the filesystem's root, which is {filesystem.root!r}"
            )
    capability = Capability() if capability is None else capability
    roots = capability.fs_roots
    places = None if roots is None else tuple(filesystem._parse(root)[0] for root in roots)
    access = Access(capability, PathPolicy() if policy is None else policy, operation, places)
    return GuardedFilesystem(cast(Filesystem, filesystem), access)


def may_show(filesystem: Filesystem | None, path: str) -> bool:
    """Return whether an answer may quote a file: a guard may keep it from being read, or out of answers."""
    guard = guard_of(filesystem)
    return guard is None or guard.may_show(path)


def guard_of(filesystem: Filesystem | None) -> GuardedFilesystem | None:
    """Return the filesystem if it is a guard."""
    from weakfs.tools.permissions.guarded_filesystem import GuardedFilesystem

    return filesystem if isinstance(filesystem, GuardedFilesystem) else None
