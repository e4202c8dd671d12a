"""The rules of leases, and their messages: the same in every engine."""

from __future__ import annotations

from weakfs.storage.errors import LeaseLost


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
            f"given back or expires",
            owner=by,
        )
    return left > 0
