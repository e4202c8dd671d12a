"""Guarding: which filesystem a call of a tool gets, and what its answer may show."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weakfs.backends.mounted.mount_point import MountPoint
    from weakfs.filesystem import Filesystem
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
    """Return the filesystem for one call of a tool: `filesystem` itself, or a guard around it if it is restricted."""
    if capability is None and policy is None:
        return filesystem
    # A call without permissions, such as the first of a new process, takes no time to import them.
    from weakfs.tools.permissions.restriction import restricted

    return restricted(filesystem, point_of(filesystem), capability, policy, operation)


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
