"""Saved sessions: loading one for a command, and its files at any moment."""

from __future__ import annotations

import os
import re
import sys
from errno import ENOENT
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import click

import weakfs
from weakfs import Registry
from weakfs.backends import InMemoryFilesystem
from weakfs.class_decorators import frozen
from weakfs.cli.errors import Failure, as_failure, usage
from weakfs.cli.formatting import typed
from weakfs.cli.output import progress
from weakfs.history.trees import Trees, chosen_filesystem
from weakfs.reducers import ExternalFsSnapshot, FileTree, TreeMounted
from weakfs.reducers.events import TreeSeen
from weakfs.session import Session, SessionError, SessionView
from weakfs.session.codec.expansion_limit import FACTOR
from weakfs.session.durable.open_session import event_store, stream_of
from weakfs.storage.engines.urls import redacted
from weakfs.storage.locations import local_path, url_of
from weakfs.transcripts.comparison import IMPORT_CAUSE

# No progress is shown for smaller files (in bytes): reading them takes too little time.
LARGE = 4_000_000

# The beginning of every saved session.
SESSION_HEAD = b'{"format":"weakfs-session"'

# A single letter is a drive on Windows, not a scheme.
_URL = re.compile("[a-zA-Z][a-zA-Z0-9+.-]+:")


@frozen
class Location:
    """A session in storage: the folder or URL, and the id of the session if it names one."""

    where: str
    session_id: str | None

    @classmethod
    def of(cls, text: str) -> Location:
        """Read `LOCATION` or `LOCATION#ID`."""
        where, mark, session_id = text.rpartition("#")
        # A path may contain "#" too, and so may a password; URLs with passwords are refused.
        is_whole = not mark or not session_id or _exists(text) or re.search("//[^/]*#[^/]*@", text)
        return cls(text, None) if is_whole else cls(where, session_id)

    def check(self) -> None:
        """Raise `FileNotFoundError` if the folder or file does not exist: a command that reads must not create it.

        Raises `ValueError` if it is a file where a folder is needed, such as a saved session.
        """
        path = local_path(self.where)
        if path is None:
            return
        kind = "folder" if url_of(self.where).startswith("folder:") else "file"
        if kind == "folder" and os.path.isfile(path):
            if is_database(path):
                raise ValueError(f"it is a SQLite database; write sqlite:{self.where}")
            raise ValueError(
                "it is a file, and sessions in storage are in a folder; to copy a saved session there: "
                "weakfs import FILE FOLDER"
            )
        if not os.path.exists(path):
            raise FileNotFoundError(ENOENT, f"no such {kind}", path)


def no_session(location: Location) -> SessionError:
    """Return the error for a location that does not have the session."""
    name = "" if location.session_id is None else f" {location.session_id!r}"
    return SessionError(f"there is no session{name}; see: {typed('weakfs', 'sessions', redacted(location.where))}")


def _exists(text: str) -> bool:
    try:
        path = local_path(text)
    except ValueError:
        return False
    return path is not None and os.path.exists(path)


def is_location(text: str) -> bool:
    """Return whether a command's FILE names a session in storage: a URL, or a folder."""
    return (_URL.match(text) is not None and not os.path.exists(text)) or os.path.isdir(Location.of(text).where)


def opened(
    location: Location, registry: str | None, max_expansion: float | None = FACTOR, *, is_shared: bool = False
) -> weakfs.Session:
    """Open a session in storage, and close it when the command ends; raise `Failure` if it does not exist.

    With `is_shared`, changes are merged with those that other processes make in the meantime. `max_expansion` is that
    of `Session.open`.
    """
    known = None if registry is None else registry_at(registry)
    with as_failure(f"open {redacted(location.where)!r}"):
        location.check()
        session = weakfs.Session.open(
            location.where,
            location.session_id,
            registry=known,
            on_conflict="merge" if is_shared else "raise",
            max_expansion=max_expansion,
        )
        if session.is_new:
            session.close()
            raise no_session(location)
        if (context := click.get_current_context(silent=True)) is not None:
            context.call_on_close(session.close)
        return session


def opened_or_created(location: Location, registry: Registry | None = None) -> weakfs.Session:
    """Open a session in storage, or create it; changes are merged with those that other processes make meanwhile.

    If the location has no session and names none, the new one gets an id that depends only on the location: servers
    that start there at once share a session, instead of each creating one.
    """
    with as_failure(f"open {redacted(location.where)!r}"):
        name = location.session_id or _only_or_first_id(location.where)
        return weakfs.Session.open(location.where, name, registry=registry, on_conflict="merge")


def _only_or_first_id(where: str) -> str:
    store = event_store(where, "process")
    try:
        known = stream_of(store, None)
    finally:
        store.close()
    path = local_path(where)
    place = redacted(url_of(where)) if path is None else os.path.realpath(path)
    return known or sha256(os.fsencode(place)).hexdigest()[:32]


def load(
    file: str,
    registry: str | None,
    max_expansion: float | None,
    *,
    is_to_change: bool = False,
    is_shared: bool = False,
) -> weakfs.Session:
    """Load a session file, or open a session in storage; raise `Failure` with the cause if that is impossible.

    A recorded session of another program becomes a session in memory; with `is_to_change` it is refused. `registry` is
    `MODULE:NAME`, see `registry_at`; `max_expansion` is that of `Session.load` and `Session.open`; `is_shared` works as
    in `opened`.
    """
    if is_location(file):
        return opened(Location.of(file), registry, max_expansion, is_shared=is_shared)
    if not is_saved_session(file):
        if is_database(file):
            raise Failure(f"cannot read the session {file!r}: it is a SQLite database; write sqlite:{file}")
        from weakfs.cli.recordings import session_of_recording

        if (recorded := session_of_recording(file)) is not None:
            if is_to_change:
                raise Failure(
                    f"cannot change {file!r}: it is a recorded session of another program; keep it as a session first: "
                    f"{typed('weakfs', 'run', file, '--save', 'SESSION')}"
                )
            return recorded
    known = None if registry is None else registry_at(registry)
    with as_failure(f"read the session {file!r}"):
        path = Path(file)
        with progress(f"reading {file}", wanted=path.stat().st_size > LARGE):
            return weakfs.Session.load(path, registry=known, max_expansion=max_expansion)


def file_version(file: str) -> str | None:
    """Return a string that is different after each time that a session file is saved; `None` if there is no file."""
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"


def is_saved_session(file: str) -> bool:
    """Return whether a file is a saved session. A pipe, which can be read only once, may be one."""
    return not os.path.isfile(file) or _begins_with(SESSION_HEAD, file)


def is_database(file: str) -> bool:
    """Return whether a regular file is a SQLite database."""
    return os.path.isfile(file) and _begins_with(b"SQLite format 3\0", file)


def _begins_with(head: bytes, file: str) -> bool:
    with as_failure(f"read the session {file!r}"), open(file, "rb") as stream:
        return stream.read(len(head)) == head


def registry_at(place: str) -> Registry:
    """Import a registry of custom types, given as `MODULE:NAME`; NAME may also be a function that returns it.

    The module may also be in the current directory, which is searched last.
    """
    module, _, name = place.partition(":")
    if not module or not name:
        raise usage(f"cannot use the registry {place!r}: it is not MODULE:NAME; give one such as app.types:REGISTRY")
    if not {"", os.getcwd()} & set(sys.path):
        # An installed command, unlike `python -m weakfs`, does not search it.
        sys.path.append(os.getcwd())
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise usage(
            f"cannot use the registry {place!r}: {error}; check the name, or add the module's directory to PYTHONPATH"
        ) from error
    registry = found() if not isinstance(found, Registry) and callable(found) else found
    if not isinstance(registry, Registry):
        raise usage(f"cannot use {place!r}: it is not a weakfs.Registry; name one")
    return registry


def moment_of(session: Session, at: str | None) -> Session | SessionView:
    """Return the session as it was at `at`: a record number, a snapshot's tag or id, or `None` for its end."""
    if at is None:
        return session
    with as_failure(f"go to {at!r}"):
        return session.at(moment_named(at))


def moment_named(text: str) -> int | str:
    """Read a record number, or the tag or id of a snapshot."""
    return int(text) if text.isascii() and text.isdigit() else text


def first_moment(session: Session) -> SessionView:
    """Return the session before its first change of files, but after its initial contents.

    Initial contents are mounts and, in a recorded session of another program, the files as they were before its first
    call. If old records were compacted away, return the earliest moment that is left.
    """
    records = session.records
    if not len(records):
        return session.at(session.seq)
    first = records[0].seq - 1
    if first == 0:
        for record in records:
            if isinstance(record.event, TreeMounted) or record.cause == IMPORT_CAUSE:
                first = record.seq
            elif not isinstance(record.event, ExternalFsSnapshot | TreeSeen):
                break
    return session.at(first)


def chosen(session: Session, wanted: str | None) -> str | None:
    """Return the external filesystem whose files are used; `None` for the session's own.

    If none is named and the session has no files of its own, use its only external filesystem.
    """
    try:
        return chosen_filesystem(session, wanted)
    except ValueError as error:
        cause, _, remedy = str(error).rpartition("; ")
        if wanted is None:
            remedy = "name one with --filesystem"
        raise usage(f"{cause}; {remedy}") from error


def tree_of(session: Session, moment: Session | SessionView, filesystem: str | None) -> FileTree:
    """Return the files at a moment, including everything the session knows about them at its end.

    Files of a lower layer that were read only later are included: they existed at that moment with the same contents.
    """
    return Trees(session).at(moment, filesystem)


def files_of(session: Session, moment: Session | SessionView, filesystem: str | None) -> InMemoryFilesystem:
    """Return the files at a moment as a read-only filesystem; see `tree_of`."""
    held = weakfs.Session(session_id="shown")
    held[FileTree].seed(tree_of(session, moment, filesystem))
    return InMemoryFilesystem(held, read_only=True)
