"""Option callbacks that parse amounts: sizes such as `10G` and durations such as `30d`."""

from __future__ import annotations

import re
from datetime import timedelta

import click

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    """Parse a size in bytes, with an optional unit; units are powers of 1,024."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,15})([KMGT]?)(?:i?B)?", value, re.IGNORECASE)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a size; give one such as 500000, 200M or 10G")
    return int(found[1]) * _UNITS[found[2].upper()]


def duration(context: click.Context, parameter: click.Parameter, value: str | None) -> timedelta | None:
    """Parse a duration with one unit."""
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,6})([smhdw])", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a duration; give one such as 90m, 12h, 30d or 8w")
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
