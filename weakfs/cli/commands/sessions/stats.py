"""`weakfs stats`: statistics of a saved session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
import orjson

from weakfs.cli.errors import DONE, as_failure
from weakfs.cli.formatting import moment
from weakfs.cli.options import expansion_option, file_argument, filesystem_option, json_option, registry_option
from weakfs.cli.output import Output
from weakfs.storage.engines.urls import redacted

if TYPE_CHECKING:
    from weakfs.session import Session

Value = int | str | None
Groups = dict[str, dict[str, Value]]


@click.command("stats")
@file_argument
@filesystem_option
@registry_option
@expansion_option
@json_option
def stats_command(
    file: str, filesystem: str | None, registry: str | None, max_expansion: float | None, as_json: bool
) -> int:
    """Count the files, records, snapshots and calls of a session."""
    from weakfs.cli.sessions import chosen, is_location, load

    session = load(file, registry, max_expansion)
    name = chosen(session, filesystem)
    with as_failure(f"read the session {redacted(file)!r}"):
        groups = measure(session, None if is_location(file) else Path(file), name)
    out = Output()
    if as_json:
        out.record(**groups)
        return DONE
    for title, values in groups.items():
        out.table(title.replace("_", " "), _rows(values) or [("none", "")])
    return DONE


def measure(session: Session, file: Path | None, filesystem: str | None) -> Groups:
    """Return statistics of a session and of its file, if it has one. O(records), plus the digests of all files."""
    from weakfs.cli.sessions import files_of
    from weakfs.tools import ToolCall

    records = session.records
    files = files_of(session, session, filesystem)
    totals, tree = files.statistics(), files.tree()
    calls = session[ToolCall].all()
    shapes = session.registry.by_type
    return {
        "session": {
            "id": session.session_id,
            "records": len(records),
            "first_record": records[0].seq if len(records) else None,
            "last_record": records[-1].seq if len(records) else None,
            "from": moment(records[0].at) if len(records) else None,
            "to": moment(records[-1].at) if len(records) else None,
            "snapshots": len(session.snapshots),
            **({} if file is None else {"file_bytes": file.stat().st_size, "blobs": _blobs(file)}),
        },
        "files": {
            **({} if filesystem is None else {"filesystem": filesystem}),
            "files": totals.file_count,
            "directories": totals.directory_count,
            "bytes": totals.total_size,
            "digest": tree.digest,
            "fingerprint": tree.fingerprint,
        },
        "events": _counted(shapes[type(record.event)].tag for record in records),
        "calls_by_status": _counted(call.status for call in calls),
        "calls_by_tool": _counted(call.tool for call in calls),
    }


def _counted(names: Iterable[str]) -> dict[str, Value]:
    return dict(sorted(Counter(names).items()))


def _blobs(file: Path) -> int:
    """Count the distinct contents in a session file, which was loaded before and so is valid."""
    document = cast("dict[str, list[object]]", orjson.loads(file.read_bytes()))
    return len(document["blobs"])


def _rows(values: dict[str, Value]) -> list[tuple[str, str]]:
    """Format a group; align the values to the right if all of them are numbers."""
    written = {name: _written(value) for name, value in values.items()}
    numbers = all(isinstance(value, int) for value in values.values())
    width = max(map(len, written.values()), default=0) if numbers else 0
    return [(name, text.rjust(width)) for name, text in written.items()]


def _written(value: Value) -> str:
    return f"{value:,}" if isinstance(value, int) else "-" if value is None else value
