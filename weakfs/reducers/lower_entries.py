"""Entries of a lower layer as they were seen, so that a commit of the upper layer can detect later changes."""

from __future__ import annotations

from attrs import frozen

from weakfs.reducers.validation import Path
from weakfs.session import event


@event("fs/lower_entry")
@frozen
class LowerEntry:
    """One entry of the lower layer as it was when it was read or hidden: an event, and a value of its slice.

    `kind` is the kind of a leaf, or "directory". `digest` is that of a file's content if it was read (hex, see
    `weakfs.session.blobs.blob.digest_of`); for a directory, one of the names, kinds, sizes and times below it.
    """

    path: Path
    kind: str
    size: int
    modified_ns: int
    mode: int
    digest: str | None
