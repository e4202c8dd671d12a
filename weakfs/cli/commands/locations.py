"""`weakfs sessions`, `import`, `export`, `fsck` and `compact`: sessions in storage."""

from __future__ import annotations

import os

from weakfs import Session
from weakfs.cli.errors import as_failure
from weakfs.cli.formatting import counted, shown
from weakfs.cli.output import Output, progress
from weakfs.cli.sessions import Location, load, opened
from weakfs.storage import open_event_store


def show_sessions(out: Output, where: str, *, as_json: bool) -> None:
    """Print the sessions in storage: the id of each, and the number of its newest frame."""
    with as_failure(f"list the sessions of {where!r}"):
        store = open_event_store(where)
        try:
            after = ""
            while names := store.streams(after=after, limit=1000):
                for name in names:
                    head = store.head(name)
                    if as_json:
                        out.record(type="session", session_id=name, frames=head)
                    else:
                        out.line((shown(name), "yellow"), f"  {counted(head, 'frame')}")
                after = names[-1]
        finally:
            store.close()


def import_session(
    out: Output, file: str, where: str, registry: str | None, max_expansion: float | None, *, as_json: bool
) -> None:
    """Copy a saved session into storage."""
    session = load(file, registry, max_expansion)
    with as_failure(f"import {file!r} into {where!r}"), progress(f"writing {where}"):
        session.copy_to(where)
    _show_copied(out, "imported", session, where, as_json=as_json)


def export_session(out: Output, where: str, file: str, registry: str | None, *, embed: bool, as_json: bool) -> None:
    """Save a session in storage to a file."""
    session = opened(Location.of(where), registry)
    with as_failure(f"export {where!r} to {file!r}"), progress(f"writing {file}"):
        session.save(os.fspath(file), embed=embed)
    _show_copied(out, "exported", session, file, as_json=as_json)


def _show_copied(out: Output, what: str, session: Session, where: str, *, as_json: bool) -> None:
    records = len(session.records)
    if as_json:
        out.record(
            type=what, session_id=session.session_id, records=records, snapshots=len(session.snapshots), to=where
        )
        return
    out.line((what, "bold"), f" {shown(session.session_id)} to {shown(where)}: {counted(records, 'record')}")


def check_session(out: Output, where: str, registry: str | None, *, as_json: bool) -> None:
    """Read a session in storage to its end: every record, every snapshot and every blob."""
    session = opened(Location.of(where), registry)
    with as_failure(f"check {where!r}"), progress(f"reading {where}"):
        records = sum(1 for _ in session.records)
        size = len(session.to_bytes())
    if as_json:
        out.record(type="checked", session_id=session.session_id, records=records, bytes=size)
        return
    found = f"{counted(records, 'record')}, {counted(len(session.snapshots), 'snapshot')}: no damage"
    out.line(("checked", "bold"), f" {shown(session.session_id)}: {found}")


def compact_session(
    out: Output, where: str, registry: str | None, keep: int, keep_calls: int | None, *, as_json: bool
) -> None:
    """Drop old records of a session in storage."""
    session = opened(Location.of(where), registry)
    with as_failure(f"compact {where!r}"), progress(f"compacting {where}"):
        dropped = session.compact(keep=keep, keep_calls=keep_calls)
        session.close()
    if as_json:
        out.record(type="compacted", session_id=session.session_id, dropped=dropped)
        return
    out.line(("compacted", "bold"), f" {shown(session.session_id)}: {counted(dropped, 'record')} dropped")
