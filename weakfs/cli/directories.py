"""Host directories: opening one for a snapshot command, and looking up snapshots by name."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager

from weakfs import Session
from weakfs.backends import HostFilesystem, InMemoryFilesystem
from weakfs.backends.host.root import HostRoot
from weakfs.backends.host.snapshot_kinds import SnapshotKind
from weakfs.cli.errors import Failure, as_failure, usage
from weakfs.cli.formatting import counted, shown, typed
from weakfs.cli.output import progress, warn
from weakfs.filesystem import Filesystem, FilesystemSnapshot, Limits
from weakfs.reducers import FileTree
from weakfs.session import Session as AnySession
from weakfs.snapshots import Store, StoredSnapshot
from weakfs.snapshots.store.catalogue import root_name
from weakfs.snapshots.undo_journal.recovery import count_unfinished

# The tag of the snapshot that `restore` takes before it replaces anything.
BEFORE_RESTORING = "before restoring "

# Reading a directory needs no size limit.
UNLIMITED = Limits(max_file_size=None, max_path_depth=None, max_segment_length=None, max_grep_matches=None)

# The minimum length of a short id.
SHORTEST = 8


def open_directory(
    directory: str,
    *,
    store: str | None = None,
    kind: SnapshotKind = "tree",
    max_bytes: int | None = None,
    session: AnySession | None = None,
    read_only: bool = False,
    filesystem_id: str | None = None,
) -> HostFilesystem:
    """Open a directory; raise `Failure` with the cause if that is impossible.

    Undo what a killed process left unfinished in it; if nothing may be changed, only report it.
    """
    with as_failure(f"open {directory!r}"):
        root = HostRoot(directory, store)
        kept = root.store if max_bytes is None else Store(root.store.path, max_bytes=max_bytes)
        if read_only:
            warn_of_unfinished(directory, count_unfinished(root.directory, root.journals.start))
        else:
            with _library_warnings_muted():
                undone = root.recover()
            warn_of_undone(directory, undone)
        if session is None:
            # Short, because users type the ids of its snapshots.
            session = Session(session_id=secrets.token_hex(SHORTEST // 2))
        with _library_warnings_muted():
            return HostFilesystem(
                directory,
                session=session,
                read_only=read_only,
                snapshots=kind,
                store=kept,
                filesystem_id=filesystem_id,
            )


def recover(directory: str, store: str | None) -> int:
    """Undo what a killed process left unfinished in a directory; return the number of operations undone."""
    with as_failure(f"repair {directory!r}"), _library_warnings_muted():
        return HostRoot(directory, store).recover()


@contextmanager
def _library_warnings_muted() -> Generator[None]:
    """Keep the library from logging what the command reports itself."""
    logger = logging.getLogger("weakfs.backends")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def warn_of_undone(directory: str, number: int) -> None:
    """Report on standard error that unfinished work was undone."""
    if number:
        pieces = counted(number, "operation")
        warn(f"undid {pieces} in {directory!r} left unfinished by a process that is gone")


def warn_of_unfinished(directory: str, number: int) -> None:
    """Report on standard error that there is unfinished work."""
    if number:
        pieces = counted(number, "operation")
        warn(
            f"{directory!r} has {pieces} left unfinished by a process that is gone; to undo this: "
            f"{typed('weakfs', 'repair', directory)}"
        )


@contextmanager
def scanning(files: HostFilesystem, doing: str) -> Generator[None]:
    """Show the number of files read during an operation that scans the directory."""
    root = files._root
    with progress(doing) as advance:
        root.on_file = lambda _path, _size: advance()
        try:
            yield
        finally:
            root.on_file = None


def snapshot_of(files: HostFilesystem, stored: StoredSnapshot) -> FilesystemSnapshot:
    """Return the snapshot that a filesystem can restore, from its entry in the store."""
    return FilesystemSnapshot(
        stored.snapshot_id,
        files.filesystem_id,
        stored.created_ns,
        stored.kind,
        stored.ref,
        files.root,
        stored.tag,
    )


def belongs_to(files: HostFilesystem, snapshot: StoredSnapshot) -> bool:
    """Return whether a snapshot is of this directory: several directories may share a store."""
    own = root_name(files.root)
    return snapshot.extra.get("root", own) == own


def newest(files: HostFilesystem) -> StoredSnapshot:
    """Return the newest snapshot that a user asked for, ignoring those that `restore` takes of what it replaces.

    Refuse to choose if one is damaged, because that may be the newest.
    """
    entries, damaged = files.store.catalogue.readable()
    for cause in damaged.values():
        raise Failure(f"cannot tell which snapshot of {files.root!r} is the newest: {cause}; or name one by its id")
    for one in reversed(entries):
        if belongs_to(files, one) and not (one.tag or "").startswith(BEFORE_RESTORING):
            return one
    raise Failure(f"there is no snapshot of {files.root!r}; take one: weakfs snapshot DIR")


def find(files: HostFilesystem, name: str, *, foreign: bool = False) -> StoredSnapshot:
    """Return the snapshot called `name`: an id, the beginning of an id, or a tag.

    Refuse a snapshot of another directory that shares the store, unless `foreign`.
    """
    found = files.store.get(find_id(files.store, name))
    if not foreign and not belongs_to(files, found):
        raise Failure(
            f"cannot use snapshot {name!r} of {files.root!r}: it was taken of {found.extra['root']!r}; give that "
            f"directory, or --foreign to use it anyway"
        )
    return found


def find_id(store: Store, name: str) -> str:
    """Return the id of the snapshot called `name`, even if its entry is damaged; the tags of damaged ones are lost."""
    entries, damaged = store.catalogue.readable()
    ids = [*(one.snapshot_id for one in entries), *damaged]
    for found in (
        [one for one in ids if one == name],
        [one.snapshot_id for one in entries if one.tag == name],
        [one for one in ids if name and _begins(one, name)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            names = short_ids(store)
            several = ", ".join(names[one] for one in found)
            raise Failure(f"cannot tell which snapshot {name!r} is: it may be {several}; name one by its id")
    lost = f" {counted(len(damaged), 'snapshot')} whose tag cannot be read may be it;" if damaged else ""
    raise Failure(f"there is no snapshot {name!r} in {store.path!r};{lost} see: weakfs snapshots DIR")


def short_ids(store: Store) -> dict[str, str]:
    """Map each id in a store to its shortest unique form: `SESS` for `SESSION/NAME`, `SESS/NAME` if there are several.

    The ids of damaged snapshots are included.
    """
    entries, damaged = store.catalogue.readable()
    parts = {one: one.rpartition("/") for one in (*(entry.snapshot_id for entry in entries), *damaged)}
    sessions = [session for session, _, _ in parts.values()]
    ordered = sorted(set(sessions))
    short: dict[str, str] = {}
    # Needed if a session has several snapshots, or if its id begins like another one.
    is_shared = {session: sessions.count(session) > 1 for session in ordered}
    for number, session in enumerate(ordered):
        beside = [ordered[other] for other in (number - 1, number + 1) if 0 <= other < len(ordered)]
        short[session] = session[: max([SHORTEST, *(_common(session, other) + 1 for other in beside)])]
        is_shared[session] |= any(other.startswith(session) for other in beside)
    return {
        whole: shown(f"{short[session]}{between}{name}" if is_shared[session] or not session else short[session])
        for whole, (session, between, name) in parts.items()
    }


def _begins(snapshot_id: str, name: str) -> bool:
    session, between, rest = snapshot_id.rpartition("/")
    head, slash, tail = name.rpartition("/")
    return snapshot_id.startswith(name) or bool(between and slash and session.startswith(head) and tail == rest)


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix of two strings."""
    return next((place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


def trees(directory: str, at: str | None, to: str | None, store: str | None) -> tuple[FileTree, FileTree]:
    """Return a directory at two moments: at a snapshot (default: the newest), and at another or, by default, now."""
    files = open_directory(directory, store=store, read_only=True)
    with as_failure(f"read the store of {directory!r}"):
        before = files.store.tree(newest(files) if at is None else find(files, at, foreign=True))
        if to is not None:
            return before, files.store.tree(find(files, to, foreign=True))
    with as_failure(f"read {directory!r}"), scanning(files, f"reading {directory}"):
        return before, files.tree()


def files_at(directory: str, at: str | None, store: str | None) -> Filesystem:
    """Return the files of a directory, read-only: at a snapshot or, by default, as they are now."""
    files = open_directory(directory, store=store, read_only=True)
    if at is None:
        return files
    with as_failure(f"read the store of {directory!r}"):
        session = Session()
        session[FileTree].seed(files.store.tree(find(files, at, foreign=True)))
        return InMemoryFilesystem(session, limits=UNLIMITED, read_only=True)


def is_directory(file: str, *, store: str | None, filesystem: str | None, registry: str | None) -> bool:
    """Return whether `file` is a directory; raise `Failure` for options that do not apply to it."""
    found = os.path.isdir(file)
    for option, value in (("--filesystem", filesystem), ("--registry", registry)) if found else (("--store", store),):
        if value is not None:
            kind = "a directory" if found else "not a directory"
            raise usage(f"cannot use {option} with {file!r}: it is {kind}; omit the option")
    return found
