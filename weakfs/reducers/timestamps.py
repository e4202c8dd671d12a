"""Times: integer nanoseconds, in which events and trees hold them, as datetimes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_datetime(at: int) -> datetime:
    """Return integer nanoseconds as an aware datetime with microseconds, clamped to the range of `datetime`."""
    try:
        return EPOCH + timedelta(microseconds=at // 1000)
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC) if at < 0 else datetime.max.replace(tzinfo=UTC)
