"""The lease of a stream: a small file that says who holds it, until when, and under which fencing number."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from weakfs.storage.folder.errors import JournalDamaged
from weakfs.storage.folder.files import Descriptor, Workplace, read_all

LEASE = "lease"


class Holder(NamedTuple):
    """Who holds a lease, and until when, in seconds since 1970."""

    owner: str
    fencing: int
    expires: float


def read_lease(folder: Descriptor, path: str) -> Holder | None:
    """Return the last holder of the lease; `None` if it was never taken or was released."""
    try:
        fields = json.loads(read_all(LEASE, folder))
        owner, fencing, expires = fields["owner"], fields["fencing"], fields["expires"]
        if not (isinstance(owner, str) and isinstance(fencing, int) and isinstance(expires, int | float)):
            raise TypeError("a field has another type")
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise JournalDamaged(os.path.join(path, LEASE), 0, None, f"it is not a lease: {error}") from None
    return Holder(owner, fencing, expires)


def write_lease(holder: Holder, folder: Descriptor, workplace: Workplace, *, is_synced: bool) -> None:
    """Replace the lease."""
    workplace.publish([json.dumps(holder._asdict()).encode()], LEASE, folder, is_synced=is_synced)
