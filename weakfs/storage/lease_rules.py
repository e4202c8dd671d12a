"""The rules of leases, and their messages: the same in every engine."""

from __future__ import annotations

from weakfs.storage.errors import LeaseLost

# How far apart the clocks of two machines that share an engine may be, in seconds.
SKEW = 5.0


def seconds_left(expires: float, seconds: float | None, now: float) -> float:
    """Return how long a lease that was granted for `seconds` still lasts; 0 or less if it is over.

    If more time is left than the lease was granted for, the clock has been set back since. The lease then counts as
    over: its end is meaningless, and a dead holder would keep others out until then. If the holder is alive after all,
    its fencing number is refused as soon as another writer has taken the lease.

    `seconds` is `None` for leases of earlier versions, which stored only the end.
    """
    left = expires - now
    return left if seconds is None or left <= seconds + SKEW else 0.0


def check_fencing(stream: str, fencing: int | None, *, newest: int, owner: str, is_held: bool) -> None:
    """Check the fencing number of an append. Raises `LeaseLost` if somebody else holds or has taken the lease."""
    if fencing is None and is_held:
        raise LeaseLost(
            f"cannot append to stream {stream!r}: {owner!r} holds its lease; wait until it is released or expires, "
            f"or append with its fencing number",
            owner=owner,
        )
    if fencing is not None and fencing != newest:
        raise LeaseLost(
            f"cannot append to stream {stream!r} with lease {fencing}: the newest one is {newest}; take the lease "
            f"again, and read what was appended since"
        )


def lease_is_held(stream: str, owner: str, *, by: str, left: float) -> bool:
    """Return whether `owner` holds the lease of a stream, which expires in `left` seconds.

    Raises `LeaseLost` if somebody else holds it.
    """
    if left > 0 and by != owner:
        raise LeaseLost(
            f"cannot lease stream {stream!r} to {owner!r}: {by!r} holds it for another {left:.0f} s; wait until it is "
            f"released or expires",
            owner=by,
        )
    return left > 0
