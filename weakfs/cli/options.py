"""What several commands have in common: options, and the words about exit statuses."""

from __future__ import annotations

import math

import click

EXIT_STATUSES = """
\b
Exit status:
  0  all was read and done; calls that failed and were rolled back are normal
  1  something could not be read or done, and is named
  2  the command line is wrong
  3  what --strict or --exit-code asks about is so, or --verify failed
"""


def factor(context: click.Context, parameter: click.Parameter, value: str) -> float | None:
    """Read a factor from 0 on, or `none` for no limit."""
    if value == "none":
        return None
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not (math.isfinite(number) and number >= 0):
        raise click.BadParameter(f"{value!r} is not a number from 0 on; give one such as 100, or 'none'")
    return number


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON Lines: one object a line.")
store_option = click.option(
    "--store",
    metavar="PATH",
    type=click.Path(),
    help="Where snapshots are kept, outside DIR.  [default: below ~/.local/state/weakfs]",
)
kind_option = click.option(
    "--kind",
    type=click.Choice(["tree", "git", "tar"]),
    default="tree",
    show_default=True,
    help="How it is kept: contents once each, git commits, or one archive.",
)
directory_argument = click.argument("directory", metavar="DIR", type=click.Path())
registry_option = click.option(
    "--registry",
    metavar="MODULE:NAME",
    help="The registry of your own types, where the session holds such.",
)
expansion_option = click.option(
    "--max-expansion",
    metavar="FACTOR",
    default="20",
    show_default=True,
    callback=factor,
    help="Refuse a FILE that takes so many times its size in memory; 'none' for one that you trust.",
)
