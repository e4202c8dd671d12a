"""`weakfs mount`: mount the files of a session as a directory, for any program."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING

import click

from weakfs.cli.errors import DONE, Failure, as_failure
from weakfs.cli.options import AT, EXIT_STATUSES, expansion_option, registry_option
from weakfs.cli.output import Output
from weakfs.cli.signals import interrupts_deferred
from weakfs.session import SessionError
from weakfs.storage import StorageError

if TYPE_CHECKING:
    from weakfs import Session
    from weakfs.session import Session as AnySession

logger = logging.getLogger("weakfs.integrations.mount")

# How long the kernel may cache the status of entries, in seconds: changes by other processes are noticed later anyway.
CACHE_SECONDS = 1.0


@click.command("mount", epilog=EXIT_STATUSES)
@click.argument("where", metavar="WHERE")
@click.argument("directory", metavar="DIR", type=click.Path())
@click.option("--at", metavar="MOMENT", help=AT + " Read-only.")
@click.option("--read-only", is_flag=True, help="Refuse every change.")
@registry_option
@expansion_option
def mount_command(
    where: str, directory: str, at: str | None, read_only: bool, registry: str | None, max_expansion: float | None
) -> int:
    """Mount the files of a session as a directory.

    DIR is an empty directory; the mount ends when it is unmounted or the command is interrupted. WHERE is a session
    file or a LOCATION in storage. Any program can work in DIR: what it writes to a file becomes an event when the file
    is closed or synced, and shows up in "weakfs timeline", "log" and "undo". A session in storage is created if it does
    not exist, and stores each change immediately; a session file is written when the mount ends.

    Needs FUSE. DIR is unmounted even if the command is killed; if that fails, the next mount unmounts it.
    """
    try:
        from weakfs.integrations.mount import mount
    except (ModuleNotFoundError, OSError) as error:
        raise Failure(str(error)) from error
    from weakfs.backends import InMemoryFilesystem
    from weakfs.cli.sessions import moment_of

    read_only = read_only or at is not None
    with _session(where, registry, max_expansion, read_only=read_only) as session:
        files = InMemoryFilesystem(moment_of(session, at), read_only=read_only)
        with (
            as_failure(f"mount at {directory!r}"),
            mount(files, directory, cache_seconds=CACHE_SECONDS) as mounted,
            # An interrupt is the normal way to end the mount.
            suppress(KeyboardInterrupt),
        ):
            out = Output()
            out.line(f"mounted at {mounted.directory}; to unmount it: fusermount3 -u {mounted.directory}")
            out.flush()
            mounted.wait()
    return DONE


@contextmanager
def _session(where: str, registry: str | None, max_expansion: float | None, *, read_only: bool) -> Generator[Session]:
    """Open the session for the mount; at the end, however it ends, save what changed."""
    from weakfs.cli.sessions import Location, file_version, is_location, load, opened_or_created, registry_at

    if read_only or (not is_location(where) and os.path.exists(where)):
        seen = None if read_only else file_version(where)
        session = load(where, registry, max_expansion, is_to_change=not read_only)
        before = session.seq
        try:
            yield session
        finally:
            if not read_only and session.seq != before:
                with interrupts_deferred():
                    _save(session, where, seen)
        return
    known = None if registry is None else registry_at(registry)
    with opened_or_created(Location.of(where), known) as opened:
        Thread(target=_follow, args=(opened,), name="weakfs mount changes", daemon=True).start()
        yield opened


def _follow(session: AnySession) -> None:
    """Show what other processes do in the session, until it is closed."""
    try:
        for _ in session.watch():
            pass
    except (SessionError, StorageError) as error:
        logger.warning("the mount no longer shows what other processes do: %s", error)


def _save(session: AnySession, where: str, seen: str | None) -> None:
    """Save the session to its file; if that is impossible or would overwrite other work, save it elsewhere.

    Raises `Failure` in that case: it says why and where.
    """
    from weakfs.cli.sessions import file_version

    try:
        with as_failure(f"save {where!r}"):
            if file_version(where) not in (None, seen):
                raise Failure(f"cannot save {where!r}: another program saved it meanwhile")
            session.save(where)
    except Failure as error:
        cause = str(error).partition("; ")[0]
        kept = _save_elsewhere(session, where)
        raise Failure(f"{cause}; the session with the changes of this mount is saved as {kept!r}") from error


def _save_elsewhere(session: AnySession, where: str) -> str:
    """Save the session to a new file next to its own or, failing that, in the directory for temporary files."""
    name = os.path.basename(where)
    try:
        return _save_new(session, name, os.path.dirname(os.path.abspath(where)))
    except OSError:
        place = tempfile.gettempdir()
    try:
        return _save_new(session, name, place)
    except OSError as error:
        raise Failure(f"cannot save the session anywhere: {error}; its changes are lost") from error


def _save_new(session: AnySession, name: str, directory: str) -> str:
    descriptor, kept = tempfile.mkstemp(prefix=f"{name}.", dir=directory)
    os.close(descriptor)
    try:
        session.save(kept)
    except BaseException:
        os.unlink(kept)
        raise
    return kept
