"""Times: the integer nanoseconds that events and trees hold, within 64 bits, and their conversion to datetimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1


def clamped(at: int) -> int:
    """Return a time clamped to 64-bit nanoseconds."""
    return min(max(at, SMALLEST), LARGEST)


def as_datetime(at: int) -> datetime:
    """Return integer nanoseconds as an aware datetime with microseconds, clamped to the range of `datetime`."""
    # Imported here because it takes 1 % of the time of a new process, and few programs ask for datetimes.
    from datetime import UTC, datetime, timedelta

    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at // 1000)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC) if at < 0 else datetime.max.replace(tzinfo=UTC)
