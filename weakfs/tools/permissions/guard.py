"""The guard of a call: the filesystem that its handler gets, and what its answer may show."""

from __future__ import annotations

from errno import EACCES
from typing import TYPE_CHECKING, NoReturn

from weakfs.messages import plural

if TYPE_CHECKING:
    from weakfs.backends.mounted.mount_point import MountPoint
    from weakfs.filesystem import Filesystem, ReadBytesResult
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


def shows(filesystem: Filesystem | None, operation: Operation, path: str) -> bool:
    """Return whether an answer may show what a permitted operation finds at a path, such as a name or a size.

    Use this for answers that cannot refer to a blob instead.
    """
    guard = guard_of(filesystem)
    return guard is None or guard.shows(operation, path)


def check_shows_size(filesystem: Filesystem | None, path: str) -> None:
    """Raise `PermissionError` if no answer may show the size of a file, for listings that must have it."""
    if not shows(filesystem, "stat", path):
        from weakfs.errors import fault

        raise fault(
            PermissionError,
            EACCES,
            f"cannot list the directory of {path!r}: the policy keeps the size of that file out of answers, and a "
            f"listing shows it; use the files by name",
        )


def check_may_show(filesystem: Filesystem | None, path: str) -> None:
    """Raise `PermissionError` if no answer may quote a file, for answers that consist of its contents alone."""
    if not may_show(filesystem, path):
        # Imported here because the import takes time and most calls do not need it.
        from weakfs.errors import fault

        raise fault(
            PermissionError,
            EACCES,
            f"cannot read {path!r}: the policy or the capability keeps its contents out of answers; use another file",
        )


def read_shown(filesystem: Filesystem, path: str, *, limit: int | None = None) -> ReadBytesResult:
    """Return the bytes of a file, at most `limit`, for an answer that consists of them or of a part of them.

    Raises `PermissionError` if no answer may quote the file, or if the capability would return less than was asked for:
    a caller that takes the part for the whole file may write it back.
    """
    found = filesystem.read_bytes(path, limit=limit)
    check_may_show(filesystem, found.path)
    if found.truncated and (limit is None or len(found.content) < limit):
        refuse_partial_read(found.path, found.size_bytes, len(found.content))
    return found


def refuse_partial_read(path: str, size: int, most: int) -> NoReturn:
    """Raise `LimitExceeded` for a file of which the capability lets a call read only a part."""
    from weakfs.tools.errors import LimitExceeded

    raise LimitExceeded(
        f"cannot read {path!r} as a whole: it has {plural(size, 'byte')}, and the capability allows {most} in one read "
        f"(max_read_bytes); search it instead, or split it into smaller files"
    )


def check_fits_inline(filesystem: Filesystem, path: str, content: str | bytes) -> None:
    """Raise `LimitExceeded` if an answer that cannot refer to a blob may not contain so much of a file."""
    guard = guard_of(filesystem)
    most = None if guard is None else guard.max_inline_bytes
    if most is None:
        return
    size = len(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    if size > most:
        from weakfs.tools.errors import LimitExceeded

        raise LimitExceeded(
            f"cannot answer with the contents of {path!r}: they have {plural(size, 'byte')}, and the capability allows "
            f"{most} in an answer (max_inline_bytes); ask for less, or search the file instead"
        )


def guard_of(filesystem: Filesystem | None) -> GuardedFilesystem | None:
    """Return the filesystem if it is a guard."""
    from weakfs.tools.permissions.guarded_filesystem import GuardedFilesystem

    return filesystem if isinstance(filesystem, GuardedFilesystem) else None
