"""The event that records the mount point of a filesystem: the path at which commands find its files."""

from __future__ import annotations

from weakfs.class_decorators import frozen
from weakfs.reducers.validation import EntryPath
from weakfs.session import event
from weakfs.session.slices.slice import Declaration, append_all, merge_appended


@event("fs/mounted_at")
@frozen
class FilesystemMounted:
    """The paths of a filesystem were given a root other than `/`: its `/a.py` is `/workspace/a.py`. No file changed.

    It is also a value of its LOG slice, where the newest value for a filesystem is the current one. `at` is in integer
    nanoseconds.
    """

    mounted_at: EntryPath
    at: int
    filesystem: str


MOUNT_EVENTS = (FilesystemMounted,)

MOUNT_SLICES = (
    Declaration(FilesystemMounted, kind="log", merge=merge_appended, reducers={FilesystemMounted: append_all}),
)
