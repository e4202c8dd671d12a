"""`weakfs log`: its options, and what it selects."""

from __future__ import annotations

import click

from weakfs.cli.errors import DONE, as_failure
from weakfs.cli.options import expansion_option, file_argument, json_option, registry_option
from weakfs.cli.output import Output


@click.command("log")
@file_argument
@click.option("--records", "by_record", is_flag=True, help="Show one row for each record instead.")
@click.option("--cause", metavar="ID", help="Only changes with this cause, such as the id of a call.")
@click.option("--path", metavar="PATH", help="Only changes at or below this path.")
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=0), help="Only the newest N.")
@click.option("--filesystem", metavar="ID", help="Only changes in this external filesystem.")
@registry_option
@expansion_option
@json_option
def log_command(
    file: str,
    by_record: bool,
    cause: str | None,
    path: str | None,
    limit: int | None,
    filesystem: str | None,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Show the tool calls of a session, oldest first.

    Each row shows the number of the call, when it began (month, day and time in UTC), its tool, its path, the number of
    lines added and removed, and its status. The output of "weakfs run" has the same numbers, and "weakfs diff FILE
    --call NUMBER" shows what a call changed. Changes made outside calls have rows without a number: undos, rollbacks,
    writes by the program itself, and, unless --cause, --path or --filesystem is given, snapshots. The last column shows
    their cause.

    With --records, each row is a record: its number, its time, its event, its cause and its path.

    With --json, each line is an object whose "type" is call, reversion, record or snapshot.
    """
    from weakfs.cli.commands.sessions.log.calls import show_calls
    from weakfs.cli.commands.sessions.log.records import Selection, show_records
    from weakfs.cli.sessions import chosen, load
    from weakfs.filesystem import normalize

    with as_failure(f"use the path {path!r}"):
        wanted = Selection(cause, None if path is None else normalize(path), limit, filesystem)
    session = load(file, registry, max_expansion)
    if filesystem is not None:
        chosen(session, filesystem)
    show = show_records if by_record else show_calls
    show(Output(), session, wanted, as_json=as_json)
    return DONE
