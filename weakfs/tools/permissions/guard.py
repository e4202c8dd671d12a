"""The guard of a call: the filesystem that its handler gets, and what its answer may show."""

from __future__ import annotations

from errno import EACCES
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
    """Return the filesystem for one tool call: `filesystem` itself, or a guard around it if the call is restricted."""
    if capability is None and policy is None:
        return filesystem
    # Imported here because calls without permissions do not need it, and the import would slow a process's first call.
    from weakfs.tools.permissions.restriction import restricted

    return restricted(filesystem, point_of(filesystem), capability, policy, operation)


def point_of(filesystem: object) -> MountPoint | None:
    """Return the mount point of a filesystem, even one behind a guard; `None` if it has none."""
    point: MountPoint | None = getattr(filesystem, "mount_point", None)
    return point


def may_show(filesystem: Filesystem | None, path: str) -> bool:
    """Return whether an answer may quote a file: a guard may forbid reading it, or keep it out of answers."""
    guard = guard_of(filesystem)
    return guard is None or guard.may_show(path)


def check_may_show(filesystem: Filesystem | None, path: str) -> None:
    """Raise `PermissionError` if no answer may quote a file, for answers that consist of its contents alone."""
    if not may_show(filesystem, path):
        # Imported here because it takes time, and most calls do not need it.
        from weakfs.filesystem.errors import fault

        raise fault(
            PermissionError,
            EACCES,
            f"cannot read {path!r}: the policy or the capability keeps its contents out of answers; use another file",
        )


def guard_of(filesystem: Filesystem | None) -> GuardedFilesystem | None:
    """Return the filesystem if it is a guard."""
    from weakfs.tools.permissions.guarded_filesystem import GuardedFilesystem

    return filesystem if isinstance(filesystem, GuardedFilesystem) else None
