"""`weakfs stats`: how much a saved session holds."""

from __future__ import annotations

import os
from collections import Counter

import orjson
from attrs import frozen

from weakfs.cli.failures import telling
from weakfs.cli.opening import files_of
from weakfs.cli.output import Output
from weakfs.cli.wording import moment
from weakfs.session import Session


@frozen
class Measured:
    """What was counted, in groups, each a name with its values."""

    groups: dict[str, dict[str, int | str | None]]


def measure(session: Session, file: str) -> Measured:
    """Count what is in a session and its file. Costs a walk through its records, and digests of its files."""
    records = session.records
    files = files_of(session)
    totals = files.statistics()
    tree = files.tree()
    first, last = (records[0], records[-1]) if len(records) else (None, None)
    events = Counter(session.registry.by_type[type(record.event)].tag for record in records)
    groups: dict[str, dict[str, int | str | None]] = {
        "session": {
            "id": session.session_id,
            "file bytes": _size(file),
            "contents in the file": _blobs(file),
            "records": len(records),
            "first record": None if first is None else first.seq,
            "last record": None if last is None else last.seq,
            "from": None if first is None else moment(first.at),
            "to": None if last is None else moment(last.at),
            "snapshots": len(session.snapshots),
        },
        "files": {
            "files": totals.file_count,
            "directories": totals.directory_count,
            "bytes": totals.total_size,
            "digest": tree.digest,
            "fingerprint": tree.fingerprint,
        },
        "records": dict(sorted(events.items())),
    }
    return Measured(groups)
