"""`prune`: keep a session, or the snapshots of a directory, within limits on size, age and number."""

from __future__ import annotations

from weakfs.backends import HostFilesystem
from weakfs.history.retention.policy import PruneReport, Retention
from weakfs.history.retention.prune_session import prune_session
from weakfs.history.retention.prune_snapshots import prune_store
from weakfs.messages import a_type
from weakfs.session import Session
from weakfs.snapshots import Store


def prune(target: Session | Store | HostFilesystem, retention: Retention, *, preview: bool = False) -> PruneReport:
    """Drop the oldest records, calls and snapshots until the rest is within the limits, and free their contents.

    Current files are never dropped. Tagged snapshots are kept unless `keep_tags` is false; if they and the files are
    larger than `max_bytes`, everything else is dropped, and the report says by how much the limit is still exceeded.
    Dropped records can no longer be read or rolled back to. With `preview`, nothing is changed.

    A session is changed atomically, even in storage. If it was loaded from a file, save it again. For a host directory
    or a store, only the snapshots in the store are pruned, except those that the filesystem's session can still roll
    back to. They are dropped one by one, and then the store is compacted; if that is interrupted, prune again.

    Raises `SessionError` for a fork and inside a transaction, and the errors of `Session.compact` and `Store.compact`.
    """
    if not isinstance(retention, Retention):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"retention is {a_type(retention)}; pass a Retention, such as Retention(max_records=1000)")
    if isinstance(target, Session):
        return prune_session(target, retention, preview=preview)
    if not isinstance(target, Store | HostFilesystem):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"cannot prune {a_type(target)}; pass a Session, a HostFilesystem or a Store")
    return prune_store(target, retention, preview=preview)
