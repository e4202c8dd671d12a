"""A filesystem on a host directory: files are changed in place, and changes are undone exactly."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from typing import TypeVar

import attrs

from weakfs.backends.checkout import CheckoutDirectory, changed_paths, check_made
from weakfs.backends.host.external_filesystem import HostExternal, Rewind
from weakfs.backends.host.host_paths import is_inside
from weakfs.backends.host.os_errors import described_errors
from weakfs.backends.host.primitives import HostFiles
from weakfs.backends.host.root import HostRoot
from weakfs.backends.host.snapshot_kinds import Kinds, SnapshotKind
from weakfs.backends.host.workplace import MOST_IN_EVENTS, HostWorkplace
from weakfs.backends.session_references import contents_needed
from weakfs.filesystem import FilesystemSnapshot, Limits, Note, RestoreReport, SymlinkPolicy
from weakfs.filesystem.checkout import Checkout, ReadBack
from weakfs.filesystem.limits import checked_limits
from weakfs.filesystem.operations.restore import as_snapshot, check_snapshot, report
from weakfs.filesystem.primitives import check_symlink_policy
from weakfs.filesystem.registry import check_bound, session_of_files
from weakfs.platforms import require_linux
from weakfs.processes.background import BackgroundProcesses
from weakfs.reducers import ExternalFsSnapshot, FileTree, TreeRestored
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import TreeSeen
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.node import path_of
from weakfs.session import External, MissingBlob, Session, UnknownSnapshot
from weakfs.snapshots.archive.tar import from_tar, to_tar
from weakfs.snapshots.directory.hard_links import set_mode_of_all_names
from weakfs.snapshots.restore import restore_entries
from weakfs.snapshots.scan.read_back import events_between, mode_at, without_set_id
from weakfs.snapshots.scan.scan_limits import ScanLimits
from weakfs.snapshots.snapshot_store import Store
from weakfs.snapshots.store.compaction import CompactReport

logger = logging.getLogger("weakfs.backends")

Self = TypeVar("Self", bound="HostFilesystem")


class HostFilesystem(HostFiles):
    """Files in a host directory, changed in place. Nothing outside it is read or changed, wherever links point.

    Without a session it creates its own; every change is an event of the session, and the filesystem is attached, so
    that the session's snapshots, rollbacks and transactions cover the files. `snapshots` is the kind of snapshot to
    take, and `store` where to store them: a directory outside `root`, by default in the user's state directory; all
    programs that work in `root` should use the same one. For a directory that was moved, pass the `filesystem_id` that
    its session knows. Work that a killed process left unfinished is undone when the root is next opened for writing.

    A path below `root` on the host is accepted as well, and an absolute path that could be such a path is always taken
    as one. So the file `/app/app/main.py` of the root `/app`, which is `/app/main.py` in results, has to be named
    `app/main.py`: without the first slash, a path from a result is never taken for another one.

    Raises `FileNotFoundError` or `NotADirectoryError` if there is no such directory, and `OSError` (ENOTSUP) on systems
    other than Linux.
    """

    __slots__ = ("_external", "_kinds", "_read_only", "follow_symlinks", "limits")

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        session: Session | None = None,
        limits: Limits = Limits(),  # noqa: B008  # frozen
        read_only: bool = False,
        follow_symlinks: SymlinkPolicy = "deny",
        snapshots: SnapshotKind = "tree",
        store: Store | str | os.PathLike[str] | None = None,
        filesystem_id: str | None = None,
    ) -> None:
        check_symlink_policy(follow_symlinks)
        if not isinstance(root, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"cannot open {root!r:.60} as a HostFilesystem: it takes the path of a directory; pass a session as "
                f"HostFilesystem(path, session=...)"
            )
        checked_limits(limits)
        given = os.fspath(root)
        require_linux(
            f"open {given!r} as a HostFilesystem",
            "use an InMemoryFilesystem, with import_bytes and export_bytes for tar archives",
        )
        self._open(
            HostRoot(given, store),
            session_of_files(session),
            limits,
            read_only,
            follow_symlinks,
            snapshots,
            given,
            filesystem_id or f"host:{os.path.realpath(given)}",
            has_store=store is not None,
        )
        if read_only:
            self._root.warn_of_unfinished()
        else:
            with self.lock():
                self._root.recover()

    def _open(
        self,
        root: HostRoot,
        session: Session,
        limits: Limits,
        read_only: bool,
        follow_symlinks: SymlinkPolicy,
        snapshots: str,
        given: str,
        filesystem_id: str,
        *,
        has_store: bool = False,
    ) -> None:
        self._session = session
        self._filesystem_id = filesystem_id
        self.limits = limits
        self.follow_symlinks: SymlinkPolicy = follow_symlinks
        self._read_only = read_only
        hosts = [one for one in session.attached if isinstance(one, HostExternal)]
        own = next((one for one in hosts if one.root.path == root.path or _replaces(root, filesystem_id, one)), None)
        if own is None:
            _refuse_overlap(root.path, [one.root.path for one in hosts])
        elif root.store.path != own.root.store.path and has_store:
            raise ValueError(
                f"cannot use the store {root.store.path!r} for {root.path!r}: its session already keeps snapshots of "
                f"it in {own.root.store.path!r}; omit store, or use another session"
            )
        if own is not None and own.root is not root and not own.root.is_in_place and root.is_in_place:
            own.reopen(self, root)
        # To a session, two objects with the same directory are one filesystem.
        self._root = root if own is None else own.root
        self._kinds = self._snapshot_kinds(snapshots)
        self._external = HostExternal(self, self._root) if own is None else own
        self._external.serve(self)
        if session.is_durable:
            self._root.was_stored = session._was_stored
        session.attach(self._external)
        spellings = {root.path, os.path.abspath(given)} - {"/"}
        self._prefixes = tuple(f"{spelling}/" for spelling in sorted(spellings, key=len, reverse=True))

    def _by_canonical_paths(self: Self) -> Self:
        made = copy(self)
        made._prefixes = ()
        return made

    def _snapshot_kinds(self, kind: str) -> Kinds:
        return Kinds(self._root, kind)

    def __repr__(self) -> str:
        return f"<HostFilesystem at {self._root.path!r}>"

    @property
    def session(self) -> Session:
        """The session that records the changes."""
        return self._session

    @property
    def background(self) -> BackgroundProcesses:
        """The background processes that work in the directory."""
        return BackgroundProcesses(self._workplace, self._root.processes)

    @property
    def _workplace(self) -> HostWorkplace:
        return HostWorkplace(self, self._root)

    @property
    def external(self) -> External:
        """The object that is attached to the session."""
        return self._external

    @property
    def trees_recorded_as(self) -> str:
        """The id under which the session records the trees of snapshots."""
        return self._filesystem_id

    @property
    def root(self) -> str:
        """The host directory, as a path without links."""
        return self._root.path

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""
        return self._read_only

    @property
    def store(self) -> Store:
        """The store of the snapshots, to see what they cost and to drop them."""
        return self._root.store

    def compact(self) -> CompactReport:
        """Free the space of contents that neither a snapshot in the store nor this session needs; see `Store.compact`.

        Contents that only one snapshot needs take up space until it is dropped: `store.account()` returns their sizes,
        and `store.drop` and `store.keep_last` drop snapshots. Contents in this session's records are kept.
        """
        return self.store.compact_holding(self.lock, lambda: contents_needed(self._session, self.store))

    def bind(self: Self, session: Session) -> Self:
        """Return the same filesystem bound to another session, such as a fork."""
        check_bound(session)
        bound = type(self).__new__(type(self))
        kind = self._kinds.kind
        path, name = self._root.path, self._filesystem_id
        bound._open(self._root, session, self.limits, self._read_only, self.follow_symlinks, kind, path, name)
        return bound

    def tree(self) -> FileTree:
        """Return all files as one immutable value. O(entries); only what changed since the last scan is read."""
        with self.lock(), described_errors("scan", "/"):
            return self._root.scan()

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Take a durable snapshot of the current files, and record it in the session.

        O(entries) to scan; only what changed since the last scan is read. Raises `PermissionError` naming a file that
        cannot be read, and `OSError` (EBUSY) while another call with unfinished changes is running.
        """
        with self.lock(), self._session._one_commit():
            self._session._check_writable()
            if not self._read_only:
                self._root.refuse_unfinished(self._running())
            with self.background.attribution() as cause:
                snapshot, taken = self._kinds.take(tag, self._next_id, self.filesystem_id, self.now())
                if cause is not None:
                    self._workplace.record(self._root.last_tree, cause)
            self._session.dispatch(taken)
            self._record_snapshot(snapshot)
        self._session._notify()
        return snapshot

    def restore(
        self, snapshot: FilesystemSnapshot | ExternalFsSnapshot, *, dry_run: bool = False, foreign: bool = False
    ) -> RestoreReport:
        """Restore a snapshot exactly. Only files that differ are changed, and no other slice.

        With `dry_run` nothing is changed. Raises `ValueError` for a snapshot of another filesystem, unless
        `foreign`; if anything is raised, the files are unchanged.
        """
        snapshot = as_snapshot(snapshot)
        check_snapshot(snapshot, self.filesystem_id, read_only=self._read_only, dry_run=dry_run, foreign=foreign)
        with self.lock():
            wanted = self._wanted(snapshot)
            notes: tuple[Note, ...] = ()
            if dry_run:
                before = self.tree()
            else:
                self._session._check_writable()
                ended = self.background.end_all("the files were restored")
                notes = tuple(Note("/", f"process {one} was stopped first") for one in ended)
                with self._work("restore", self.root, ()) as work:
                    mark = len(work.journal.notes)
                    before = self._root.restore_to(work.journal, wanted)
                    self._restored(before, wanted, snapshot.snapshot_id)
                    notes += tuple(work.journal.notes[mark:])
        self._session._notify()
        return report(snapshot.snapshot_id, before, wanted, dry_run=dry_run, notes=notes)

    def _exchange(self, target: FilesystemSnapshot | Rewind, on_kept: Callable[[FilesystemSnapshot], object]) -> None:
        """Take a snapshot, pass it to `on_kept`, and restore `target`. The files are scanned once."""
        with self.lock():
            on_kept(self.snapshot())
            self._restore_to(target, now=self._root.last_tree)

    def _restore_to(self, target: FilesystemSnapshot | Rewind, *, now: FileTree | None = None) -> None:
        """Restore a snapshot, or undo known changes, without an event: for a session that rolls itself back.

        `now` is the result of a scan under the same lock.
        """
        with self.lock():
            if isinstance(target, Rewind):
                now, wanted = target.now, target.wanted
            else:
                now = self._root.scan() if now is None else now
                wanted = self._wanted(target)
            if self._root.matches(now, wanted):
                return
            self._refuse_if_read_only("restore", self.root)
            with self._work("restore", self.root, ()) as work:
                mark = len(work.journal.notes)
                if isinstance(target, Rewind):
                    restore_entries(self._root.directory, work.journal, now, wanted)
                else:
                    self._root.restore_to(work.journal, wanted, now=now)
                for note in work.journal.notes[mark:]:
                    logger.warning("%s: %s", self.root, note)

    def _wanted(self, snapshot: FilesystemSnapshot) -> FileTree:
        if self._session.missing_blobs:
            # The store may have a blob that is missing from the session's file.
            snapshot = self._kinds.with_own_tree(snapshot)
        try:
            is_own = snapshot.filesystem_id == self.filesystem_id
            wanted = self._kinds.tree_of(snapshot, self.limits, is_own=is_own)
        except (UnknownSnapshot, MissingBlob):
            # A resumed session has recorded the tree itself, wherever the store is.
            seen = self._seen_at(snapshot.snapshot_id)
            if seen is None:
                raise
            wanted = seen
        if snapshot.filesystem_id != self.filesystem_id:
            self.limits.check_tree(wanted)
        return wanted

    def _seen_at(self, snapshot_id: str) -> FileTree | None:
        """Return the files of a snapshot as the session recorded them when it was taken."""
        for record in reversed(self._session.records):
            event = record.event
            if type(event) is TreeSeen and (event.source, event.filesystem) == (snapshot_id, self.trees_recorded_as):
                return event.tree
        return None

    def export_bytes(self) -> bytes:
        """Return all files as one tar archive; equal files give equal bytes."""
        return to_tar(self.tree())

    def import_bytes(self, data: bytes) -> None:
        """Replace all files with those of a tar archive; see `weakfs.snapshots.from_tar` for what it refuses."""
        self._refuse_if_read_only("import into", "/")
        tree = from_tar(data, limits=self.limits, at=self.now())
        with self.lock():
            self.background.end_all("the files were replaced")
            with self._work("import into", self.root, ()) as work:
                self._restored(self._root.restore_to(work.journal, tree), tree, "archive")
        self._session._notify()

    def _replace(self, wanted: FileTree, source: str) -> None:
        self._refuse_if_read_only("restore", self.root)
        with self.lock(), self._work("restore", self.root, ()) as work:
            self._restored(self._root.restore_to(work.journal, wanted), wanted, source)

    def _next_id(self) -> str:
        return self._session.next_id("files")

    @contextmanager
    def checkout(
        self,
        path: str = "/",
        *,
        read_back: ReadBack = ReadBack(),  # noqa: B008  # frozen
    ) -> Iterator[Checkout]:
        """Let a program work on the files in place: no other call may change any of them in the meantime.

        If the block succeeds, the changes become events; otherwise they are undone. Costs two scans, during which
        calls on the session's other files continue.
        """
        self._refuse_if_read_only("run a program in", path)
        canonical, segments = self._directory(path, "run a program in")
        top = self._root.path_for_programs.rstrip("/")
        host = "/".join((top, *(os.fsdecode(names.to_bytes(name)) for name in segments)))
        laid = self._checkout_directory(host or "/")
        with ExitStack() as stack:
            with self.lock():
                self.background.refuse_running(f"run a program in {canonical!r}")
                work = stack.enter_context(self._work("run a program in", canonical, ()))
            with self.background.attribution() as cause:
                before = self._root.scan_for_undo(work.journal)
                if cause is not None:
                    self._workplace.record(before, cause)
            self._root.began = began = before, self._session.seq
            stack.callback(setattr, self._root, "began", None)
            yield laid
            with self._root.store.in_use():
                found = self._root.read_back(ScanLimits(self.limits, read_back, before))
                after, laid.set_id_removed = self._without_set_id(before, found)
                with self.lock():
                    self._record_changes(self._expected(*began), after)
                    check_made(self.limits, before, after, "/", after)
        laid.changed = changed_paths(before, after, "/")
        self._session._notify()

    def _checkout_directory(self, path: str) -> CheckoutDirectory:
        return CheckoutDirectory(path)

    def _without_set_id(self, before: FileTree, found: FileTree) -> tuple[FileTree, tuple[str, ...]]:
        """Remove the set-uid and set-gid bits that a program set; return the tree without them, and their paths."""
        after, paths = without_set_id(before, found)
        removed = set(paths)
        for path in paths:
            segments = segments_of(path)
            after, others = set_mode_of_all_names(self._root.directory, after, segments, mode_at(after, segments))
            removed.update(map(path_of, others))
        return after, tuple(sorted(removed))

    def _record_changes(self, before: FileTree, after: FileTree) -> None:
        """Dispatch events for a program's changes."""
        events = list(events_between(before, after, at=self.now(), most=MOST_IN_EVENTS))
        if events and not self._workplace.knows(before, after):
            # The scan is the only source for the state before the program ran.
            self._session.dispatch(self._seen(before, "a scan"))
        own = self._session._cause_of_one_change() if len(events) > 1 else None
        for event in events:
            self._session.dispatch(attrs.evolve(event, filesystem=self.filesystem_id), cause=own)

    def _record_snapshot(self, snapshot: FilesystemSnapshot) -> None:
        self._session.dispatch(self._seen(self._root.last_tree, snapshot.snapshot_id))

    def _restored(self, before: FileTree, after: FileTree, source: str) -> None:
        self._session.dispatch(self._seen(before, "a scan"))
        self._session.dispatch(TreeRestored(after, source, self.now(), self.filesystem_id))

    def _seen(self, tree: FileTree, source: str) -> TreeSeen:
        return TreeSeen(tree, source, self.now(), self.filesystem_id)


def _replaces(root: HostRoot, filesystem_id: str, known: HostExternal) -> bool:
    """Return whether `root` is the new location of a directory that its session knows under a path that is gone."""
    return known.filesystem_id == filesystem_id and not known.root.is_in_place and root.is_in_place


def _refuse_overlap(path: str, others: list[str]) -> None:
    for other in others:
        if is_inside(path, other) or is_inside(other, path):
            raise ValueError(
                f"cannot open {path!r} with a session that has {other!r}: one contains the other, and undoing changes "
                f"of one could undo the other's; use one filesystem for both, or another session"
            )
