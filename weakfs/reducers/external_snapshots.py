"""The snapshots of external filesystems that a session knows. A rollback keeps all of them."""

from __future__ import annotations

from attrs import field, frozen

from weakfs.session import event
from weakfs.session.blobs.blob import Stored


@event("fs/external_snapshot")
@frozen
class ExternalFsSnapshot:
    """One snapshot of an external filesystem: an event, and at the same time a value of its LOG slice.

    `kind` is "tree", "git" or "tar"; `ref` identifies the snapshot in the store of that kind. `created_at` is in
    integer nanoseconds. `data` is the content of kinds that store it in the slice, such as an archive.
    """

    snapshot_id: str
    filesystem_id: str
    created_at: int
    kind: str
    ref: str
    root_path: str
    git_dir: str | None = None
    tag: str | None = None
    data: Stored | bytes | None = field(default=None, repr=False)
