"""POSIX access control lists in the form in which Linux stores them as extended attributes."""

from __future__ import annotations

import struct
from collections.abc import Mapping

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"

_VERSION = 2
_OWNER, _USER, _GROUP, _MASK, _OTHERS = 1, 2, 4, 16, 32
_NOBODY = 2**32 - 1


def access_control_list(mode: int, users: Mapping[int, int]) -> bytes:
    """Return a list with the permissions of some users; the group bits of `mode` are the mask."""
    entries = [
        (_OWNER, mode >> 6, _NOBODY),
        *((_USER, permissions, user) for user, permissions in sorted(users.items())),
        (_GROUP, mode >> 3, _NOBODY),
        (_MASK, mode >> 3, _NOBODY),
        (_OTHERS, mode, _NOBODY),
    ]
    packed = (struct.pack("<HHI", tag, permissions & 7, one) for tag, permissions, one in entries)
    return struct.pack("<I", _VERSION) + b"".join(packed)
