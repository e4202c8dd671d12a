"""Birth times from statx(2), on filesystems that record them. Python has no binding for it before 3.15."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from struct import unpack_from

AT_SYMLINK_NOFOLLOW = 0x100
STATX_BTIME = 0x800

# `struct statx` is 256 bytes on every architecture; the birth time (seconds, nanoseconds) is at this offset.
_Status = ctypes.c_char * 256
BTIME = 80


def birth_time(directory: int, name: bytes) -> int | None:
    """Return when an entry was created, in nanoseconds; `None` if unknown. No link is followed."""
    found = _Status()
    call = _statx()
    if call is None or call(directory, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, found):
        return None
    (mask,) = unpack_from("=I", found)
    seconds, nanoseconds = unpack_from("=qI", found, BTIME)
    at = int(seconds) * 1_000_000_000 + int(nanoseconds)
    # Some filesystems claim to know the birth time and return zero.
    return at if mask & STATX_BTIME and at > 0 else None


@cache
def _statx() -> Callable[..., int] | None:
    library = ctypes.CDLL(None, use_errno=True)
    call = getattr(library, "statx", None)
    if call is None:
        return None
    call.restype = ctypes.c_int
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
    made: Callable[..., int] = call
    return made
