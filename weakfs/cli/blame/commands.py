"""The commands `blame` and `why`: names, options and help texts."""

from __future__ import annotations

import click

from weakfs.cli.errors import DONE
from weakfs.cli.options import AT, expansion_option, filesystem_option, json_option, registry_option
from weakfs.cli.output import Output

file_argument = click.argument("file", type=click.Path())
at_option = click.option("--at", metavar="SEQ|TAG", help=AT)


@click.command("blame")
@file_argument
@click.argument("path")
@click.option("-L", "lines", metavar="A,B", help="Only lines A to B; with A,+N, the N lines starting at A.")
@at_option
@click.option("--porcelain", is_flag=True, help='The format of "git blame --porcelain", for programs.')
@filesystem_option
@registry_option
@expansion_option
@json_option
def blame_command(
    file: str,
    path: str,
    lines: str | None,
    at: str | None,
    porcelain: bool,
    filesystem: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Show which call wrote each line of a file.

    PATH is a file of the session FILE, which is a saved session, or a location such as sqlite:sessions.db#ID. Each line
    shows the number of the record, its time, the tool and the id of the call, and the line. Lines are followed through
    edits, moves, copies, merges and rollbacks. "(found)" marks lines that another program wrote before the record, and
    "^" before the number marks lines that are older than all records that are kept.

    With --porcelain, the number of the record takes the place of the commit.
    """
    from weakfs.cli.blame.lines import Style, show_blame, span_of
    from weakfs.cli.sessions import load

    span = span_of(lines)
    session = load(file, registry, max_expansion)
    style: Style = "json" if as_json else "porcelain" if porcelain else "plain"
    show_blame(Output(), session, path, at, filesystem, span, style)
    return DONE


@click.command("why")
@file_argument
@click.argument("place", metavar="PATH:LINE")
@at_option
@filesystem_option
@registry_option
@expansion_option
@json_option
def why_command(
    file: str,
    place: str,
    at: str | None,
    filesystem: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Show the call that wrote one line of a file.

    PATH is a file of the session FILE. The call is shown with its arguments and its answer.
    """
    from weakfs.cli.blame.lines import show_reason
    from weakfs.cli.sessions import load

    session = load(file, registry, max_expansion)
    show_reason(Output(), session, place, at, filesystem, as_json=as_json)
    return DONE
