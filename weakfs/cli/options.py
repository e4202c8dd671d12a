"""What several commands have in common: options, and the words about exit statuses."""

from __future__ import annotations

import click

EXIT_STATUSES = """
\b
Exit status:
  0  all was read and done; calls that failed and were rolled back are normal
  1  something could not be read or done, and is named
  2  the command line is wrong
  3  what --strict or --exit-code asks about is so, or --verify failed
"""

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
