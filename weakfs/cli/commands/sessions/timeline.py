"""`weakfs timeline`: what happened in a session, row by row, with the files that each row changed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, Failure, as_failure
from weakfs.cli.formatting import counted, date_and_time, shown, typed
from weakfs.cli.options import expansion_option, file_argument, json_option, registry_option
from weakfs.cli.output import Output

if TYPE_CHECKING:
    from weakfs import Session
    from weakfs.history.timeline_rows import TimelineRow

# The maximum length of a target in the table, in characters.
MAX_TARGET = 40


@click.command("timeline")
@file_argument
@click.option("--files", "with_files", is_flag=True, help="Below each row, list every file that it changed.")
@click.option(
    "--html",
    "page",
    metavar="PAGE",
    type=click.Path(),
    help="Write one HTML page that shows everything and needs no server.",
)
@click.option("--no-contents", is_flag=True, help="With --html: leave out the contents of all files.")
@click.option("--tui", "full_screen", is_flag=True, help="Show a full-screen view, controlled by keyboard.")
@registry_option
@expansion_option
@json_option
def timeline_command(
    file: str,
    with_files: bool,
    page: str | None,
    no_contents: bool,
    full_screen: bool,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Show what happened in a session, and which files changed.

    Lists calls, changes outside calls, merges, rollbacks and snapshots. FILE is a saved session, or a location such as
    sqlite:sessions.db#ID. Each row has the number of a call, its time, who made it, the fork in which it was made, its
    tool and target, how it ended and how long it took, and the files that it changed, with the lines added and removed.

    With --json, each line is an object, and "files" lists what changed.

    With --html, PAGE is written: searchable rows, differences, the files at any moment, and who wrote each line. It
    contains the files that calls changed; --no-contents leaves these out.

    With --tui, the terminal shows the same: searchable rows, differences, a comparison of two rows, the files at any
    moment, who wrote each line, and the command that would undo a row. It needs the extra weakfs[tui].
    """
    if full_screen and (page is not None or as_json or with_files):
        raise click.UsageError("--tui cannot be used with --html, --json or --files: the view shows everything")
    if page is not None and (as_json or with_files):
        raise click.UsageError("--html cannot be used with --json or --files: the page shows everything; omit them")
    if no_contents and page is None:
        raise click.UsageError("--no-contents works only with --html; add --html PAGE")
    from weakfs.cli.sessions import load
    from weakfs.history.timeline_rows import timeline

    if full_screen:
        return _show_full_screen(file, registry, max_expansion)
    session = load(file, registry, max_expansion)
    if page is not None:
        return _write_page(session, file, page, with_contents=not no_contents)
    out = Output()
    with as_failure("read the history"):
        if as_json:
            for row in timeline(session):
                out.record(**row.as_fields())
            return DONE
        rows = list(timeline(session))
    if rows:
        _show_rows(out, rows, with_files=with_files)
    return DONE


def _show_rows(out: Output, rows: Sequence[TimelineRow], *, with_files: bool) -> None:
    """Print the rows as a table, or with the files that each of them changed."""
    from weakfs.history.tree_patch import LETTERS

    names = ["call", "time", "who", "fork", "action", "target", "status", "took", "files", "lines"]
    table = [_cells(row) for row in rows]
    # Columns without any value are left out.
    used = [place for place in range(len(names)) if any(line[place] for line in table)]
    if not with_files:
        out.grid([names[place] for place in used], [[line[place] for place in used] for line in table])
        return
    for row, line in zip(rows, table, strict=True):
        out.line("  ".join(line[place] for place in used if line[place]))
        for one in row.files:
            origin = "" if one.source is None else f"{shown(one.source)} -> "
            out.line(f"    {LETTERS[one.change]}  {origin}{shown(one.path)}")


def _cells(row: TimelineRow) -> list[str]:
    from weakfs.history.descriptions import short_action

    added, removed = row.lines
    return [
        "" if row.number is None else str(row.number),
        date_and_time(row.at),
        shown(row.caller or ""),
        shown(row.fork or ""),
        shown(short_action(row.action)),
        row.target if len(row.target) <= MAX_TARGET else f"...{row.target[3 - MAX_TARGET :]}",
        row.status,
        f"{(row.ended_at - row.at) / 1e6:,.0f} ms" if row.kind == "call" else "",
        counted(len(row.files), "file") if row.files else "",
        f"+{added} -{removed}" if row.files else "",
    ]


def _write_page(session: Session, file: str, page: str, *, with_contents: bool) -> int:
    from weakfs.history.page import timeline_page
    from weakfs.session.files.atomic_write import write_atomically
    from weakfs.storage.engines.urls import redacted

    where = typed(redacted(file))
    with as_failure("read the history"):
        text = timeline_page(session, where, with_contents=with_contents)
    data = text.encode()
    with as_failure(f"write {page!r}"):
        write_atomically(page, [data])
    Output(finish_unread=True).line(f"{shown(page)}: {counted(len(data), 'byte')}")
    return DONE


def _show_full_screen(file: str, registry: str | None, max_expansion: float | None) -> int:
    from weakfs.cli.sessions import load
    from weakfs.storage.engines.urls import redacted

    try:
        from weakfs.cli.terminal.app import TimelineApp
    except ModuleNotFoundError as error:
        raise Failure(str(error)) from error
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("cannot show the timeline full-screen: this is not a terminal; omit --tui to get a table")
    TimelineApp(load(file, registry, max_expansion), typed(redacted(file))).run()
    return DONE
