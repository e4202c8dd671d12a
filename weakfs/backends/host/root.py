"""State shared by all filesystem objects on one host directory: descriptor, lock, store and unfinished work."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from errno import EIO, ENOENT

from weakfs.backends.host.host_paths import default_store, is_inside, open_root, root_folder_name
from weakfs.backends.host.locks import Claims, RootLock
from weakfs.backends.host.os_errors import described
from weakfs.errors import fault
from weakfs.filesystem import Note
from weakfs.messages import plural
from weakfs.processes.background.table import ProcessTable
from weakfs.reducers.tree.node import FileTree, Segments, path_of
from weakfs.session import MissingBlob
from weakfs.session.durable.commits.uncertain_commits import was_stored_anywhere
from weakfs.session.external_filesystems import CommitPlace
from weakfs.session.interruption import uninterrupted
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.hard_links import HardLinks
from weakfs.snapshots.errors import StoreDamaged
from weakfs.snapshots.git.sink import Base
from weakfs.snapshots.restore import Plan, restore_tree
from weakfs.snapshots.scan.scan import OnFile, scan, scan_entry
from weakfs.snapshots.scan.scan_limits import ScanLimits, UnwantedContents
from weakfs.snapshots.scan.sinks import HashOnlySink, Sink
from weakfs.snapshots.scan.stat_cache import Scan
from weakfs.snapshots.snapshot_store import Store
from weakfs.snapshots.store.snapshot_writer import StoreWriter
from weakfs.snapshots.store.store_sink import StoreSink
from weakfs.snapshots.undo_journal.journal import Journal, Nested
from weakfs.snapshots.undo_journal.journal_directory import Journals
from weakfs.snapshots.undo_journal.recovery import HeldNames, Recovery, WasStored, count_unfinished, recover_journals

# A function to call at the end of a unit of work.
Step = Callable[[], object]

logger = logging.getLogger("weakfs.backends")


class HostRoot:
    """A host directory in use. Hold `lock` to read and change it in one atomic step."""

    def __init__(self, root: str | HostDirectory, store: Store | str | os.PathLike[str] | None) -> None:
        self.directory = root if isinstance(root, HostDirectory) else open_root(root)
        self.path = self.directory.root
        self._known_by = root_folder_name(self.path)
        # Device and inode number of the directory, as last seen. Nothing else can have them while it is open.
        self._identity: tuple[int, int] | None = None
        self.lock = RootLock(self.directory)
        self.claims = Claims()
        self.links = HardLinks(self.directory)
        # Background programs that work in the directory.
        self.processes = ProcessTable()
        # The journal of the last restore of a manifest. It is empty unless undoing that restore failed.
        self._restoring: Journal | None = None
        self.use_store(store if isinstance(store, Store) else Store(store or default_store(self.path)))
        if is_inside(os.path.realpath(self.store.path), self.path):
            raise ValueError(
                f"cannot keep snapshots of {self.path!r} in {self.store.path!r}, which is inside it; name a store "
                f"outside"
            )
        self._last_scan: Scan | None = None
        # The base for writing the next commit as a difference.
        self.base: Base | None = None
        # While a program works in the directory for a call: the files when it began, and the number of the newest
        # record at that time.
        self.began: tuple[FileTree, int] | None = None
        # Called with the path and size of every file that a scan reads.
        self.on_file: OnFile | None = None
        # Returns whether a commit was stored, for work that a killed process left behind.
        self.was_stored: WasStored = was_stored_anywhere

    def use_store(self, store: Store) -> None:
        """Keep snapshots and the journals of unfinished work in a store, which other roots may share."""
        self.store = store
        self.journals = Journals(os.path.join(store.path, "journals", self._known_by))

    def scan(self) -> FileTree:
        """Scan the directory; contents go into the store. O(entries); only what changed is read."""
        with self.store.sink() as writer:
            self.scan_into(writer)
            self._finish(writer)
        return self.last_tree

    def _finish(self, writer: StoreWriter | StoreSink) -> None:
        """Sync the contents that a scan has put into the store."""
        writer.finish()

    @property
    def last_tree(self) -> FileTree:
        """The files as the last scan found them."""
        assert self._last_scan is not None
        return self._last_scan.tree

    def scan_into(self, writer: Sink) -> Scan:
        """Scan the directory; contents go into `writer`, which the caller has to finish."""
        with self.lock:
            return self._scan_into(writer, None)

    def _scan_into(self, writer: Sink, bounds: ScanLimits | None) -> Scan:
        self.check_in_place()
        self._last_scan = scan(self.directory.descriptor, writer, self._newest(), on_file=self.on_file, bounds=bounds)
        return self._last_scan

    def scan_for_undo(self, journal: Journal) -> FileTree:
        """Scan the directory before it changes, so that undoing the journal restores this state.

        Like `read_back`, this is for callers that have claimed the whole directory: others need not wait for the scan.
        """
        with self.store.sink() as writer:
            seen = self._scan_into(writer, None)
            self._finish(writer)
            assert seen.ref is not None
            # While the store is locked: from now on, a compaction keeps what the undo needs.
            journal.tree(seen.ref.hex())
        return self.last_tree

    def read_back(self, bounds: ScanLimits) -> FileTree:
        """Scan the directory after a program worked in it. Entries beyond the bounds are refused without being read."""
        with self.store.sink() as writer:
            self._scan_into(writer, bounds)
            self._finish(writer)
        return self.last_tree

    def store_entry(self, segments: Segments) -> FileTree:
        """Store the entry at a path, and return it as a tree with only that entry."""
        parent = self.directory.open_directory(segments[:-1])
        try:
            with self.store.sink() as writer:
                known = self._last_scan and self._last_scan.entry(segments)
                found = scan_entry(parent, segments[-1], writer, known, directory=path_of(segments[:-1]))
                writer.finish()
                return found.tree
        finally:
            os.close(parent)

    def _newest(self) -> Scan | None:
        """Return the newest known scan: of this process, or the newest snapshot in the store.

        It only saves time, so damaged snapshots are passed over: without it, everything is read.
        """
        if self._last_scan is None:
            entries, damaged = self.store.catalogue.readable()
            causes = [*damaged.values()]
            if entries:
                newest = entries[-1]
                try:
                    self._last_scan = self.store.as_scan(newest)
                    if newest.kind == "git":
                        self.base = Base(self._last_scan.tree, newest.extra["git_tree"])
                except (MissingBlob, StoreDamaged) as error:
                    causes.append(str(error))
            for cause in causes:
                logger.warning("a snapshot of the store %r is damaged: %s", self.store.path, cause)
        return self._last_scan

    def work(self) -> Work:
        """Begin a unit of work."""
        return Work(self)

    def restore_to(self, journal: Journal, wanted: FileTree, *, now: FileTree | None = None) -> FileTree:
        """Make the directory match a tree, logging every step in the journal; return its previous tree.

        `now` is the result of a scan under the same lock.
        """
        now = self.scan() if now is None else now
        restore_tree(self.directory, journal, now, wanted)
        return now

    def matches(self, now: FileTree, wanted: FileTree) -> bool:
        """Return whether there is nothing to restore."""
        return not Plan.of(now, wanted)

    def restore_manifest(self, ref: str) -> tuple[Note, ...]:
        """Make the directory match a manifest, to undo a journal, and return the attributes that files lost.

        The current files are not kept, so they take up no space in the store, and new files are not read.
        """
        wanted = self.store.tree(bytes.fromhex(ref))
        try:
            return self._restore_manifest(wanted)
        except PermissionError:
            # A program removed permissions, for itself and for us; the wanted tree has the original ones.
            self.directory.make_readable(wanted)
            return self._restore_manifest(wanted)

    def _restore_manifest(self, wanted: FileTree) -> tuple[Note, ...]:
        if self._restoring is not None:
            self._restoring.undo()
        held = HeldNames(self.journals.start)
        journal = self._restoring = Journal(self.directory, self.journals, self.restore_manifest, held=held)
        try:
            self._restore_whole(journal, wanted)
        except BaseException:
            journal.undo()
            raise
        journal.close()
        return tuple(journal.notes)

    def _restore_whole(self, journal: Journal, wanted: FileTree) -> None:
        sink = HashOnlySink()
        unwanted = UnwantedContents(wanted, sink)
        now = scan(self.directory.descriptor, sink, self._last_scan, unwanted=unwanted).tree
        restore_tree(self.directory, journal, now, wanted)

    def recover(self, *, keeps_files: bool = False) -> int:
        """Undo the unfinished work of processes that have ended; return how many units of work were undone.

        With `keeps_files`, discard its journals instead: a program did the work, and wants the files as they are.
        Raises `OSError` if undoing fails; the files then stay as those processes left them.
        """
        with self.lock:
            try:
                undone = self._recover(keeps_files=keeps_files).undone
            except OSError as error:
                cause = described(error, self.path) if error.strerror else error
                raise fault(
                    type(error),
                    error.errno or EIO,
                    f"cannot open {self.path!r}: a process that was killed left unfinished work, which cannot be "
                    f"undone: {cause}; remove the cause and open it again, or open it with "
                    f"read_only=True to look at it",
                ) from error
        if undone:
            logger.warning(
                "undid %s in %s that a killed process left unfinished", plural(undone, "operation"), self.path
            )
        return undone

    @property
    def is_in_place(self) -> bool:
        """Whether the directory that was opened is still at its path."""
        try:
            there = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        if (there.st_dev, there.st_ino) == self._identity:
            return True
        # On some mounts, a directory gets another inode number when it is first changed.
        self._identity = (own := os.fstat(self.directory.descriptor)).st_dev, own.st_ino
        self.directory.lasting_inode = own.st_ino
        return (there.st_dev, there.st_ino) == self._identity

    def check_in_place(self) -> None:
        """Raise `FileNotFoundError` if the directory was removed or renamed.

        Its descriptor stays open, so reads and writes would otherwise continue in the removed or renamed directory.
        """
        if not self.is_in_place:
            raise fault(
                FileNotFoundError,
                ENOENT,
                f"cannot use {self.path!r}: the directory that was opened is no longer there; put it back, or open "
                f"the directory that is there now",
            )

    @property
    def path_for_programs(self) -> str:
        """The path under which programs on the host reach the directory."""
        return self.path

    def claim(self, work: Work, *paths: Segments) -> None:
        """Claim paths for a unit of work, after undoing unfinished work of processes that have ended.

        Raises `OSError` (EBUSY) if the unfinished work of others changed one of them. The caller holds `lock`.
        """
        self.check_in_place()
        self._check_others(*paths)
        self.claims.take(work, *paths)

    def refuse_unfinished(self, work: Work | None) -> None:
        """Raise `OSError` (EBUSY) if others have unfinished changes, which no snapshot may include. `lock` is held."""
        self._check_others(())
        self.claims.check(work, ())

    def unfinished(self, work: Work | None) -> set[Segments]:
        """Return the topmost paths that the unfinished work of others changed. The caller holds `lock`."""
        changed = {segments for one in self._recover().in_progress for segments in one}
        return changed | self.claims.of_others(work)

    def _check_others(self, *paths: Segments) -> None:
        others = self._recover()
        if others.undone:
            logger.warning("undid %s in %s left unfinished", plural(others.undone, "operation"), self.path)
        for changed in others.in_progress:
            self.claims.check_changed(changed, *paths)

    def _recover(self, *, keeps_files: bool = False) -> Recovery:
        start, own = self.journals.start, self.journals.own()
        return recover_journals(
            self.directory, start, own, self.restore_manifest, self.was_stored, keeps_files=keeps_files
        )

    def warn_of_unfinished(self) -> int:
        """Log a warning if a killed process left work unfinished; for read-only use, which cannot undo it."""
        left = count_unfinished(self.directory, self.journals.start)
        if left:
            logger.warning(
                "%s is as a killed process left it, with %s unfinished; open it for writing to undo that",
                self.path,
                plural(left, "operation"),
            )
        return left


class Work:
    """One unit of work on a root: its journal and its claims, which end together."""

    def __init__(self, root: HostRoot) -> None:
        self.root = root
        self.journal = Journal(root.directory, root.journals, root.restore_manifest)
        # The attributes that an undo could not restore exactly.
        self.inexact: tuple[Note, ...] = ()
        # Functions to call at the end: when everything was committed, or when this part of the work was undone.
        self._at_end: list[tuple[Step, Step]] = []

    @property
    def lost(self) -> tuple[Note, ...]:
        """The attributes that files lost through the work so far."""
        return tuple(self.journal.notes)

    def begin(self) -> Part:
        """Begin a nested part of this work, which can be undone on its own."""
        return Part(self)

    def prepare(self, place: CommitPlace) -> None:
        """Log which commit the work belongs to."""
        self.journal.prepare(place)

    def at_end(self, commit: Step, undo: Step) -> None:
        """Call one of the two functions when the work ends."""
        self._at_end.append((commit, undo))

    @property
    def steps(self) -> int:
        """The number of functions to call at the end."""
        return len(self._at_end)

    def undo_steps(self, mark: int = 0) -> None:
        """Call the functions for undoing this work, or a part that began at `mark`."""
        while len(self._at_end) > mark:
            self._at_end.pop()[1]()

    def undo(self) -> None:
        """Undo everything; may be called again if it raises."""
        with uninterrupted(), self.root.lock:
            self.undo_steps()
            self.inexact = self.journal.undo()
            self.root.claims.release(self)

    def close(self) -> None:
        """Commit everything."""
        with uninterrupted(), self.root.lock:
            self.root.claims.release(self)
            self.journal.close()
        for commit, _ in self._at_end:
            commit()


class Part:
    """The part of a unit of work that belongs to a nested transaction."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.inexact: tuple[Note, ...] = ()
        self._nested = Nested(work.journal)
        self._mark = work.steps
        self._noted = len(work.journal.notes)

    @property
    def lost(self) -> tuple[Note, ...]:
        """The attributes that files lost since this part began."""
        return tuple(self.work.journal.notes[self._noted :])

    def begin(self) -> Part:
        """Begin a part nested in this one."""
        return Part(self.work)

    def undo(self) -> None:
        """Undo what this part changed."""
        with uninterrupted(), self.work.root.lock:
            self.work.undo_steps(self._mark)
            self.inexact = self._nested.undo()

    def close(self) -> None:
        """Leave the changes to the whole unit of work."""
