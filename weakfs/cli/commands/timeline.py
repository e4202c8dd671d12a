"""`weakfs timeline`: what happened in a session, row by row, with the files that each row changed."""

from __future__ import annotations

import click

from weakfs.cli.errors import DONE, as_failure
from weakfs.cli.formatting import counted, date_and_time, shown
from weakfs.cli.options import expansion_option, json_option, registry_option
from weakfs.cli.output import Output

SIGNS = {"added": "A", "removed": "D", "changed": "M", "moved": "R"}
# The longest target that the table shows, in characters.
MAX_TARGET = 40


@click.command("timeline")
@click.argument("file")
@click.option("--files", "with_files", is_flag=True, help="List every file that a row changed below it.")
@registry_option
@expansion_option
@json_option
def timeline_command(
    file: str, with_files: bool, registry: str | None, max_expansion: float | None, as_json: bool
) -> int:
    """Show what happened in the session FILE: calls, changes outside calls, merges, rollbacks and snapshots.

    FILE is a saved session, or a location such as sqlite:sessions.db#ID. Each row has the number of a call, its time,
    who made it, the fork in which it was made, its tool and target, how it ended and how long it took, and the files
    that it changed, with the lines added and removed.

    With --json, each line is an object, and "files" lists what changed.
    """
    from weakfs.cli.sessions import load
    from weakfs.history.timeline import TimelineRow, timeline

    session = load(file, registry, max_expansion)
    out = Output()
    with as_failure("read the history"):
        if as_json:
            for row in timeline(session):
                out.record(**row.as_fields())
            return DONE
        rows = list(timeline(session))
    if not rows:
        return DONE

    def cells(row: TimelineRow) -> list[str]:
        added, removed = row.lines
        action = row.action.removeprefix("fs/").removeprefix("session/")
        return [
            "" if row.number is None else str(row.number),
            date_and_time(row.at),
            shown(row.caller or ""),
            shown(row.fork or ""),
            shown(action),
            row.target if len(row.target) <= MAX_TARGET else f"...{row.target[3 - MAX_TARGET :]}",
            row.status,
            f"{(row.ended_at - row.at) / 1e6:,.0f} ms" if row.kind == "call" else "",
            counted(len(row.files), "file") if row.files else "",
            f"+{added} -{removed}" if row.files else "",
        ]

    names = ["call", "time", "who", "fork", "action", "target", "status", "took", "files", "lines"]
    table = [cells(row) for row in rows]
    # Columns that are empty throughout say nothing.
    used = [place for place in range(len(names)) if any(line[place] for line in table)]
    if not with_files:
        out.grid([names[place] for place in used], [[line[place] for place in used] for line in table])
        return DONE
    for row, line in zip(rows, table, strict=True):
        out.line("  ".join(line[place] for place in used if line[place]))
        for one in row.files:
            origin = "" if one.source is None else f"{shown(one.source)} -> "
            out.line(f"    {SIGNS[one.change]}  {origin}{shown(one.path)}")
    return DONE
