"""Times and events as plain values, for people and other programs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from weakfs.session import Registry

SECOND = 1_000_000_000


def moment(at: int, *, fraction: bool = False) -> str:
    """Format a time in integer nanoseconds as ISO 8601, UTC; `fraction` keeps all nine digits."""
    seconds, nanoseconds = divmod(at, SECOND)
    try:
        whole = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (ValueError, OverflowError, OSError):
        # A custom clock may count from any origin.
        return f"{at}ns"
    return f"{whole}.{nanoseconds:09}Z" if fraction else f"{whole}Z"


def plain_fields(registry: Registry, event: object) -> Iterator[tuple[str, str | int | float | None]]:
    """Yield the fields of an event that are plain values. Bytes become their length; other types are left out."""
    shape = registry.by_type[type(event)]
    for name, value in zip(shape.names, shape.pack(event), strict=True):
        if name == "filesystem" and value is None:
            # The session's own files, which is by far the most common case.
            continue
        if value is None or isinstance(value, str | int | float):
            yield name, value
        elif isinstance(value, bytes):
            yield f"{name}_bytes", len(value)
