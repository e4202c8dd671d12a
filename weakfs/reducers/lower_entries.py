"""What was seen of the files below a layer, so that writing the layer down can tell what changed since."""

from __future__ import annotations

from attrs import frozen

from weakfs.reducers.validation import Path
from weakfs.session import event


@event("fs/lower_entry")
@frozen
class LowerEntry:
    """One entry of the layer below as it was when it was read or hidden: an event, and a value of its slice.

    `kind` is that of a leaf, or "directory". `digest` is that of a file's content where it was read (hex, see
    `weakfs.session.blobs.blob.digest_of`); of a directory it is one of the names, kinds, sizes and times below it.
    """

    path: Path
    kind: str
    size: int
    modified_ns: int
    mode: int
    digest: str | None
