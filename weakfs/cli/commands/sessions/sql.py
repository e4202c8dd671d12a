"""`weakfs sql`: query a session in SQL."""

from __future__ import annotations

import csv
import io

import click

from weakfs.cli.errors import DONE, as_failure
from weakfs.cli.formatting import shown
from weakfs.cli.options import expansion_option, file_argument, json_option, registry_option
from weakfs.cli.output import Output


@click.command("sql")
@file_argument
@click.argument("query", required=False)
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=1), default=1000, show_default=True, help="Rows.")
@click.option("--timeout", metavar="SECONDS", type=click.FloatRange(min=0), default=10.0, show_default=True)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV with a header.")
@registry_option
@expansion_option
@json_option
def sql_command(
    file: str,
    query: str | None,
    limit: int,
    timeout: float,
    as_csv: bool,
    registry: str | None,
    max_expansion: float | None,
    as_json: bool,
) -> int:
    """Query a session with a SELECT statement of SQLite.

    Without QUERY, list the tables and their columns. FILE is a saved session, or a location such as
    sqlite:sessions.db#ID. The tables are calls, records, changes, files, lines and snapshots. They are read-only, and
    exist only for the query.
    """
    from weakfs.cli.sessions import load
    from weakfs.history.sql import COLUMNS, run_query

    out = Output()
    if query is None:
        for name, columns in COLUMNS.items():
            out.line((name, "bold"), f" ({columns})")
        return DONE
    session = load(file, registry, max_expansion)
    with as_failure("answer"):
        result = run_query(session, query, max_rows=limit, timeout=timeout)
    if as_json:
        for row in result:
            values = (value.hex() if isinstance(value, bytes) else value for value in row)
            out.record(**dict(zip(result.columns, values, strict=True)))
    elif as_csv:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([result.columns, *result])
        out.data(text.getvalue().encode())
    else:
        out.grid(result.columns, [["" if value is None else shown(str(value)) for value in row] for row in result])
    if result.truncated:
        click.echo(f"weakfs: only the first {limit:,} rows are shown; to see more, give a larger --limit", err=True)
    return DONE
