"""The lease of a stream: a small file that says who holds it, until when, and under which fencing number."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from weakfs.storage.event_store import Lease
from weakfs.storage.folder.errors import JournalDamaged
from weakfs.storage.folder.files import Descriptor, TemporaryFolder, read_all
from weakfs.storage.folder.stream.locked_stream import LockedStream
from weakfs.storage.lease_rules import check_fencing, lease_is_held, seconds_left

LEASE = "lease"


class Holder(NamedTuple):
    """The holder of a lease, its end in seconds since 1970, and how long it was granted for, in seconds."""

    owner: str
    fencing: int
    expires: float
    # `None` in files of earlier versions.
    seconds: float | None = None

    def left(self, newest: int, now: float) -> float:
        """Return how long the lease still lasts, if it is the newest one."""
        return seconds_left(self.expires, self.seconds, now) if self.fencing == newest else 0.0


def read_lease(folder: Descriptor, path: str) -> Holder | None:
    """Return the last holder of the lease; `None` if it was never taken or was released."""
    try:
        fields = json.loads(read_all(LEASE, folder))
        owner, fencing, expires = fields["owner"], fields["fencing"], fields["expires"]
        seconds = fields.get("seconds")
        if not (isinstance(owner, str) and isinstance(fencing, int) and isinstance(expires, int | float)):
            raise TypeError("a field has another type")
        if not isinstance(seconds, int | float | None):
            raise TypeError("'seconds' has another type")
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise JournalDamaged(os.path.join(path, LEASE), 0, None, f"it is not a lease: {error}") from None
    return Holder(owner, fencing, expires, seconds)


def write_lease(holder: Holder, folder: Descriptor, temporary_folder: TemporaryFolder, *, is_synced: bool) -> None:
    """Replace the lease."""
    temporary_folder.publish([json.dumps(holder._asdict()).encode()], LEASE, folder, is_synced=is_synced)


def take_lease(stream: LockedStream, owner: str, seconds: float) -> Lease:
    """Take or renew the lease of a stream; see `EventStore.lease`."""
    options = stream.options
    now = options.clock()
    with stream.locked():
        journal = stream.create()
        holder = read_lease(journal.folder, stream.path)
        left = holder.left(journal.fencing, now) if holder is not None else 0.0
        if not lease_is_held(stream.name, owner, by=holder.owner if holder is not None else "", left=left):
            # The lease may have reached the disk although the journal has not.
            journal.fencing = max(journal.fencing, holder.fencing if holder is not None else 0) + 1
            journal.write_state(journal.batch(), journal.state())
        granted = Holder(owner, journal.fencing, now + seconds, seconds)
        write_lease(granted, journal.folder, stream.root.temporary_folder(), is_synced=options.is_synced)
        return Lease(stream.name, owner, granted.fencing, seconds)


def release_lease(stream: LockedStream, lease: Lease) -> None:
    """Release a lease if no other writer has taken it."""
    with stream.locked():
        journal = stream.journal
        holder = read_lease(journal.folder, stream.path) if journal is not None else None
        if journal is not None and holder is not None and holder.fencing == lease.fencing == journal.fencing:
            released = holder._replace(expires=0)
            write_lease(released, journal.folder, stream.root.temporary_folder(), is_synced=stream.options.is_synced)


def check_lease(stream: LockedStream, fencing: int | None) -> None:
    """Raise `LeaseLost` if an append with this fencing number is not allowed. The caller holds the lock."""
    journal = stream.journal
    newest = journal.fencing if journal is not None else 0
    holder = read_lease(journal.folder, stream.path) if journal is not None and fencing is None else None
    is_held = holder is not None and holder.left(newest, stream.options.clock()) > 0
    owner = holder.owner if holder is not None else ""
    check_fencing(stream.name, fencing, newest=newest, owner=owner, is_held=is_held)
    if journal is not None and fencing is None:
        journal.ended_lease = newest
