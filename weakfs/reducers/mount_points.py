"""The event that names the files of a filesystem by the path at which commands find them."""

from __future__ import annotations

from weakfs.class_decorators import frozen
from weakfs.reducers.validation import EntryPath
from weakfs.session import event
from weakfs.session.slices.slice import Declaration, append_all, merge_appended


@event("fs/mounted_at")
@frozen
class FilesystemMounted:
    """Paths of a filesystem were given a root other than `/`: its `/a.py` is `/workspace/a.py`. No file changed.

    Also a value of its LOG slice; the newest value for a filesystem holds. `at` is in integer nanoseconds.
    """

    mounted_at: EntryPath
    at: int
    filesystem: str


MOUNT_EVENTS = (FilesystemMounted,)

MOUNT_SLICES = (
    Declaration(FilesystemMounted, kind="log", merge=merge_appended, reducers={FilesystemMounted: append_all}),
)
