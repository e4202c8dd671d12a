"""`weakfs sessions`, `import`, `export`, `fsck`, `compact` and `delete`: sessions in storage."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TypeVar

import click

from weakfs import Session
from weakfs.cli.errors import USAGE, Failure, as_failure
from weakfs.cli.formatting import counted, shown
from weakfs.cli.output import Output, progress, warn
from weakfs.cli.sessions import Location, load, no_session, opened
from weakfs.session import MissingBlob
from weakfs.session.durable.open_session import stream_of
from weakfs.session.errors import RecordsDropped
from weakfs.storage import open_event_store
from weakfs.storage.engines.urls import redacted
from weakfs.storage.folder import FolderEventStore

T = TypeVar("T")

# The maximum number of attempts to read a session that other processes are compacting.
ATTEMPTS = 5


def show_sessions(out: Output, where: str, *, as_json: bool) -> None:
    """Print the sessions in a storage: the id of each, and the number of its newest frame."""
    with as_failure(f"list the sessions of {redacted(where)!r}"):
        Location(where, None).check()
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
            if not after and not as_json:
                warn(f"there are no sessions at {redacted(where)!r}")
        finally:
            store.close()


def import_session(
    out: Output, file: str, where: str, registry: str | None, max_expansion: float | None, *, as_json: bool
) -> None:
    """Copy a saved session into storage."""
    session = load(file, registry, max_expansion)
    with as_failure(f"import {file!r} into {redacted(where)!r}"), progress(f"writing {redacted(where)}"):
        session.copy_to(where)
    _show_copied(out, "imported", session, redacted(where), as_json=as_json)


def export_session(out: Output, where: str, file: str, registry: str | None, *, embed: bool, as_json: bool) -> None:
    """Save a session in storage to a file."""
    with as_failure(f"export {redacted(where)!r} to {file!r}"), progress(f"writing {file}"):
        session, _ = _read(where, registry, lambda session: session.save(os.fspath(file), embed=embed))
    _show_copied(out, "exported", session, file, as_json=as_json)


def _read(where: str, registry: str | None, reading: Callable[[Session], T]) -> tuple[Session, T]:
    """Open a session in storage and read all of it; return it, and what was read.

    If records or contents are missing, it is opened again, because another process may have compacted it meanwhile. In
    a damaged session they are missing every time.
    """
    for left in reversed(range(ATTEMPTS)):
        session = opened(Location.of(where), registry)
        try:
            return session, reading(session)
        except (RecordsDropped, MissingBlob):
            if not left:
                raise
    raise AssertionError("the last attempt returns or raises")


def _show_copied(out: Output, what: str, session: Session, where: str, *, as_json: bool) -> None:
    records = len(session.records)
    if as_json:
        out.record(
            type=what, session_id=session.session_id, records=records, snapshots=len(session.snapshots), to=where
        )
        return
    out.line((what, "bold"), f" {shown(session.session_id)} to {shown(where)}: {counted(records, 'record')}")


def check_session(out: Output, where: str, registry: str | None, *, give_up: bool, as_json: bool) -> None:
    """Read everything of a session in storage: all records, snapshots and contents.

    With `give_up`, first set aside the damaged files of a folder and what follows them.
    """
    for name in _given_up(where) if give_up else ():
        if as_json:
            out.record(type="set aside", name=f"{name}.damaged")
        else:
            out.line(("set aside", "bold"), f" {shown(name)}.damaged")
    with as_failure(f"check {redacted(where)!r}"), progress(f"reading {redacted(where)}"):
        session, (records, size) = _read(
            where, registry, lambda session: (sum(1 for _ in session.records), len(session.to_bytes()))
        )
    if as_json:
        out.record(type="checked", session_id=session.session_id, records=records, bytes=size)
        return
    found = f"{counted(records, 'record')}, {counted(len(session.snapshots), 'snapshot')}: no damage"
    out.line(("checked", "bold"), f" {shown(session.session_id)}: {found}")


def _given_up(where: str) -> list[str]:
    """Cut a session in a folder before the damage; return the names of the files that were set aside."""
    location = Location.of(where)
    names: list[str] = []
    with as_failure(f"give up what is damaged in {redacted(where)!r}"):
        location.check()
        store = open_event_store(location.where)
        try:
            if not isinstance(store, FolderEventStore):
                raise ValueError("only the journal of a folder can be cut; restore the storage from a backup")
            stream = stream_of(store, location.session_id)
            while stream is not None and (damages := store.check(stream)):
                names += store.give_up(stream, damages[0])
        finally:
            store.close()
    return names


def compact_session(
    out: Output, where: str, registry: str | None, keep: int, keep_calls: int | None, *, as_json: bool
) -> None:
    """Drop old records of a session in storage."""
    session = opened(Location.of(where), registry, is_shared=True)
    with as_failure(f"compact {redacted(where)!r}"), progress(f"compacting {redacted(where)}"):
        dropped = session.compact(keep=keep, keep_calls=keep_calls)
        session.close()
    if as_json:
        out.record(type="compacted", session_id=session.session_id, dropped=dropped)
        return
    out.line(("compacted", "bold"), f" {shown(session.session_id)}: {counted(dropped, 'record')} dropped")


def delete_session(out: Output, where: str, *, is_sure: bool, as_json: bool) -> None:
    """Print what a session in storage contains, ask for confirmation unless `is_sure`, and delete it."""
    location, shown_where = Location.of(where), redacted(where)
    with as_failure(f"delete {shown_where!r}"):
        location.check()
        store = open_event_store(location.where)
    try:
        with as_failure(f"delete {shown_where!r}"):
            name = stream_of(store, location.session_id)
            head = 0 if name is None else store.head(name)
            if name is None or not (head or name in store.streams(name)):
                raise no_session(location)
        what = f"session {shown(name)} of {shown(store.url)}: {counted(head, 'frame')}, with all its files and history"
        if not is_sure:
            if as_json or not sys.stdin.isatty():
                raise Failure(f"cannot ask whether to delete {what}; pass --yes to delete it", status=USAGE)
            click.confirm(f"This deletes {what}.\nDelete it permanently?", abort=True, err=True)
        with as_failure(f"delete {shown_where!r}"):
            Session.delete(store, name, expected=head)
    finally:
        store.close()
    if as_json:
        out.record(type="deleted", session_id=name, frames=head)
    else:
        out.line(("deleted", "bold"), f" {what}")
