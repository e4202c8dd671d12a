"""Options that several commands share, the values that options parse, and the help text about exit statuses."""

from __future__ import annotations

import math
import re
from datetime import timedelta

import click

EXIT_STATUSES = """
\b
Exit status:
  0  success; calls that failed and were rolled back are normal
  1  something could not be read or done; the message names it
  2  the command line is invalid
  3  --strict: a call failed; --exit-code, --verify: something differs
     or is damaged; --preview: there are conflicts
"""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}

AT = "A record number, or the tag or id of a snapshot. [default: the end]"


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


def factor(context: click.Context, parameter: click.Parameter, value: str) -> float | None:
    """Parse a non-negative factor, or `none` for no limit."""
    if value == "none":
        return None
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not (math.isfinite(number) and number >= 0):
        raise click.BadParameter(f"{value!r} is not a non-negative number; give one such as 100, or 'none'")
    return number


file_argument = click.argument("file", type=click.Path())
at_option = click.option("--at", metavar="SEQ|TAG", help=AT)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON Lines: one object per line.")
store_option = click.option(
    "--store",
    metavar="PATH",
    type=click.Path(),
    help="Where snapshots are stored, outside DIR.  [default: below ~/.local/state/weakfs]",
)
kind_option = click.option(
    "--kind",
    type=click.Choice(["tree", "git", "tar"]),
    default="tree",
    show_default=True,
    help="The storage format: deduplicated contents, git commits, or a single archive.",
)
foreign_option = click.option("--foreign", is_flag=True, help="Accept a snapshot of another directory.")
directory_argument = click.argument("directory", metavar="DIR", type=click.Path())
registry_option = click.option(
    "--registry",
    metavar="MODULE:NAME",
    help="The registry of your own types, if the session contains any. MODULE may be in the current directory.",
)
expansion_option = click.option(
    "--max-expansion",
    metavar="FACTOR",
    default="20",
    show_default=True,
    callback=factor,
    help="Refuse a FILE that expands to more than this many times its size in memory; 'none' if you trust it.",
)
filesystem_option = click.option(
    "--filesystem",
    metavar="ID",
    help="The external filesystem to use.  [default: the only one, if the session has no files of its own]",
)
