"""`weakfs sessions`, `import`, `export`, `fsck`, `compact` and `delete`: sessions in storage."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from weakfs.cli.errors import DONE, as_failure, usage
from weakfs.cli.formatting import counted, shown
from weakfs.cli.options import expansion_option, file_argument, json_option, registry_option
from weakfs.cli.output import Output, progress, warn
from weakfs.session import MissingBlob
from weakfs.session.errors import RecordsDropped
from weakfs.storage.engines.urls import redacted

if TYPE_CHECKING:
    from weakfs import Session
    from weakfs.storage import StorageDamaged

T = TypeVar("T")

location_argument = click.argument("location")

# The maximum number of attempts to read a session that other processes are compacting.
ATTEMPTS = 5


@click.command("sessions")
@location_argument
@json_option
def sessions_command(location: str, as_json: bool) -> int:
    """List the sessions at LOCATION.

    LOCATION is a folder, or a URL such as sqlite:sessions.db.
    """
    from weakfs.cli.sessions import Location
    from weakfs.storage import open_event_store

    out = Output()
    with as_failure(f"list the sessions of {redacted(location)!r}"):
        Location(location, None).check()
        store = open_event_store(location)
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
                warn(f"there are no sessions at {redacted(location)!r}")
        finally:
            store.close()
    return DONE


@click.command("import")
@file_argument
@location_argument
@registry_option
@expansion_option
@json_option
def import_command(file: str, location: str, registry: str | None, max_expansion: float | None, as_json: bool) -> int:
    """Copy a saved session to LOCATION, with its whole history."""
    from weakfs.cli.sessions import load

    session = load(file, registry, max_expansion)
    with as_failure(f"import {file!r} into {redacted(location)!r}"), progress(f"writing {redacted(location)}"):
        session.copy_to(location)
    _show_copied("imported", session, redacted(location), as_json=as_json)
    return DONE


@click.command("export")
@location_argument
@file_argument
@click.option("--embed", is_flag=True, help="Save everything in that one file, without sidecar files.")
@registry_option
@json_option
def export_command(location: str, file: str, embed: bool, registry: str | None, as_json: bool) -> int:
    """Save the session at LOCATION to FILE.

    LOCATION#ID names one of several sessions.
    """
    with as_failure(f"export {redacted(location)!r} to {file!r}"), progress(f"writing {file}"):
        session, _ = _read(location, registry, lambda session: session.save(os.fspath(file), embed=embed))
    _show_copied("exported", session, file, as_json=as_json)
    return DONE


@click.command("fsck")
@location_argument
@click.option(
    "--give-up", is_flag=True, help="First set aside the damaged files and everything after them (folders only)."
)
@registry_option
@json_option
def fsck_command(location: str, give_up: bool, registry: str | None, as_json: bool) -> int:
    """Check the session at LOCATION for damage.

    Reads everything, and names what is damaged or missing, each frame by its number. LOCATION#ID names one of several
    sessions. With --give-up, everything before the damage is kept, and the damaged files get names that end in
    ".damaged".
    """
    out = Output()
    for name in _given_up(location) if give_up else ():
        if as_json:
            out.record(type="set aside", name=f"{name}.damaged")
        else:
            out.line(("set aside", "bold"), f" {shown(name)}.damaged")
    with as_failure(f"check {redacted(location)!r}"), progress(f"reading {redacted(location)}"):
        damages = _damage_in(location)
        for damage in damages if as_json or len(damages) > 1 else ():
            _show_damage(damage, out, as_json=as_json)
        if damages:
            raise damages[0]
        session, (records, size) = _read(
            location, registry, lambda session: (sum(1 for _ in session.records), len(session.to_bytes()))
        )
    if as_json:
        out.record(type="checked", session_id=session.session_id, records=records, bytes=size)
        return DONE
    found = f"{counted(records, 'record')}, {counted(len(session.snapshots), 'snapshot')}: no damage"
    out.line(("checked", "bold"), f" {shown(session.session_id)}: {found}")
    return DONE


@click.command("delete")
@location_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def delete_command(location: str, yes: bool, as_json: bool) -> int:
    """Permanently delete the session at LOCATION.

    The history of the session is deleted too. LOCATION#ID names one of several sessions. Shows what will be deleted,
    and asks for confirmation. A session that changes in the meantime, or that another process has opened exclusively,
    is not deleted; any other process that has it open gets an error on its next change.
    """
    from weakfs import Session
    from weakfs.cli.sessions import Location, no_session
    from weakfs.session.durable.open_session import stream_of
    from weakfs.storage import open_event_store

    place, where = Location.of(location), redacted(location)
    with as_failure(f"delete {where!r}"):
        place.check()
        store = open_event_store(place.where)
    try:
        with as_failure(f"delete {where!r}"):
            name = stream_of(store, place.session_id)
            head = 0 if name is None else store.head(name)
            if name is None or not (head or name in store.streams(name)):
                raise no_session(place)
        what = f"session {shown(name)} of {shown(store.url)}: {counted(head, 'frame')}, with all its files and history"
        if not yes:
            if as_json or not sys.stdin.isatty():
                raise usage(f"cannot ask whether to delete {what}; pass --yes to delete it")
            click.confirm(f"This deletes {what}.\nDelete it permanently?", abort=True, err=True)
        with as_failure(f"delete {where!r}"):
            Session.delete(store, name, expected=head)
    finally:
        store.close()
    out = Output(finish_unread=True)
    if as_json:
        out.record(type="deleted", session_id=name, frames=head)
    else:
        out.line(("deleted", "bold"), f" {what}")
    return DONE


def _read(where: str, registry: str | None, reading: Callable[[Session], T]) -> tuple[Session, T]:
    """Open a session in storage and read all of it; return it, and what was read.

    If records or contents are missing, it is opened again, because another process may have compacted it meanwhile. In
    a damaged session they are missing every time.
    """
    from weakfs.cli.sessions import Location, opened

    for left in reversed(range(ATTEMPTS)):
        session = opened(Location.of(where), registry)
        try:
            return session, reading(session)
        except (RecordsDropped, MissingBlob):
            if not left:
                raise
    raise AssertionError("the last attempt returns or raises")


def _show_copied(what: str, session: Session, where: str, *, as_json: bool) -> None:
    out = Output(finish_unread=True)
    records = len(session.records)
    if as_json:
        out.record(
            type=what, session_id=session.session_id, records=records, snapshots=len(session.snapshots), to=where
        )
        return
    out.line((what, "bold"), f" {shown(session.session_id)} to {shown(where)}: {counted(records, 'record')}")


def _damage_in(where: str) -> list[StorageDamaged]:
    """Return the damage in the stream of a session."""
    from weakfs.cli.sessions import Location
    from weakfs.session.durable.open_session import stream_of
    from weakfs.storage import DurabilityWarning, open_event_store
    from weakfs.storage.verification import damage_in

    location = Location.of(where)
    location.check()
    with warnings.catch_warnings():
        # It is opened again, and then warns.
        warnings.simplefilter("ignore", DurabilityWarning)
        store = open_event_store(location.where)
    try:
        stream = stream_of(store, location.session_id)
        return [] if stream is None else damage_in(store, stream)
    finally:
        store.close()


def _show_damage(damage: StorageDamaged, out: Output, *, as_json: bool) -> None:
    from weakfs.storage import FrameDamaged

    if not isinstance(damage, FrameDamaged):
        place, what, cause = {}, "", str(damage)
    else:
        place, what, cause = {"first": damage.first, "last": damage.last}, f"{damage.frames}: ", damage.cause
    if as_json:
        out.record(type="damaged", **place, cause=cause)
    else:
        out.line(("damaged", "bold"), f" {what}{shown(cause)}")


def _given_up(where: str) -> list[str]:
    """Cut a session in a folder before the damage; return the names of the files that were set aside."""
    from weakfs.cli.sessions import Location
    from weakfs.session.durable.open_session import stream_of
    from weakfs.storage import open_event_store
    from weakfs.storage.folder import FolderEventStore

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


def compact_session(where: str, registry: str | None, keep: int, keep_calls: int | None, *, as_json: bool) -> int:
    """Drop old records of a session in storage."""
    from weakfs.cli.sessions import Location, opened

    out = Output(finish_unread=True)
    session = opened(Location.of(where), registry, is_shared=True)
    with as_failure(f"compact {redacted(where)!r}"), progress(f"compacting {redacted(where)}"):
        dropped = session.compact(keep=keep, keep_calls=keep_calls)
        session.close()
    if as_json:
        out.record(type="compacted", session_id=session.session_id, dropped=dropped)
    else:
        out.line(("compacted", "bold"), f" {shown(session.session_id)}: {counted(dropped, 'record')} dropped")
    return DONE
