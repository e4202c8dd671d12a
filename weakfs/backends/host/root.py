"""What all filesystem objects over one host directory share: the directory, its lock, store and unfinished work."""

from __future__ import annotations

import logging
import os
from errno import EIO, ENOENT
from hashlib import sha256
from weakref import WeakSet

from weakfs.backends.host.directory_lock import RootLock
from weakfs.backends.host.path_locks import Claims
from weakfs.filesystem import Note
from weakfs.filesystem.errors import fault
from weakfs.reducers.tree.node import FileTree, Segments
from weakfs.session.interruption import uninterrupted
from weakfs.snapshots.directory.directory import HostDirectory
from weakfs.snapshots.directory.hard_links import HardLinks
from weakfs.snapshots.directory.restore import restore_tree
from weakfs.snapshots.git.sink import Base
from weakfs.snapshots.journal.journal import Journal, Nested
from weakfs.snapshots.journal.recovery import Others, count_left_behind, settle
from weakfs.snapshots.scan.scan_limits import Bounds, Discarded
from weakfs.snapshots.scan.sinks import HashOnly, Sink
from weakfs.snapshots.scan.stat_cache import Survey
from weakfs.snapshots.scan.survey import OnFile, survey, survey_entry
from weakfs.snapshots.store.store import Store

logger = logging.getLogger("weakfs.backends")


class HostRoot:
    """One host directory that is worked on. `lock` is held by whoever looks and changes as one step."""

    def __init__(self, root: str, store: Store | str | os.PathLike[str] | None) -> None:
        if not root:
            raise ValueError("cannot open '': it names no directory; name one, or '.' for the current one")
        try:
            self.directory = HostDirectory(root)
        except FileNotFoundError as error:
            raise fault(
                FileNotFoundError,
                error.errno or 0,
                f"cannot open {root!r}: there is no such directory; make it first",
            ) from None
        except NotADirectoryError as error:
            raise fault(
                NotADirectoryError,
                error.errno or 0,
                f"cannot open {root!r}: it is no directory; name a directory of the host",
            ) from None
        except PermissionError as error:
            raise fault(
                PermissionError,
                error.errno or 0,
                f"cannot open {root!r}: {error.strerror}; give yourself the permission, or name another directory",
            ) from None
        self.path = self.directory.root
        self.lock = RootLock(self.directory)
        self.claims = Claims()
        self.links = HardLinks(self.directory)
        # The work that is going on.
        self.works: WeakSet[Work] = WeakSet()
        self.store = store if isinstance(store, Store) else Store(store or default_store(self.path))
        if is_inside(os.path.realpath(self.store.path), self.path):
            raise ValueError(
                f"cannot keep snapshots of {self.path!r} in {self.store.path!r}: that lies inside it; name a store "
                f"outside"
            )
        self._seen: Survey | None = None
        # What the last commit was, for the next to be told as a difference.
        self.base: Base | None = None
        # Is told of every file that a scan reads: its path and its size.
        self.on_file: OnFile | None = None

    @property
    def journals(self) -> str:
        """How the paths of journals of unfinished work begin: those of this root, whatever else uses the store."""
        return os.path.join(self.store.path, "journals", _known_by(self.path))

    def look(self) -> FileTree:
        """Scan the directory; contents go into the store. O(entries), and what changed is read."""
        with self.store.observer() as writer:
            seen = self.look_into(writer)
            writer.finish()
        return seen.tree

    @property
    def last(self) -> FileTree:
        """Give what the last scan found."""
        assert self._seen is not None
        return self._seen.tree

    def look_into(self, writer: Sink) -> Survey:
        """Scan the directory; contents go where `writer` puts them, which has to be finished."""
        with self.lock:
            return self._look_into(writer, None)

    def _look_into(self, writer: Sink, bounds: Bounds | None) -> Survey:
        self.check_in_place()
        self._seen = survey(self.directory.descriptor, writer, self._newest(), on_file=self.on_file, bounds=bounds)
        return self._seen

    def look_durably(self, journal: Journal) -> FileTree:
        """Scan the directory before anything in it may change, so that undoing the journal goes back to that.

        For whoever has claimed the whole directory, as `read_back`: others need not wait for the scan.
        """
        with self.store.observer() as writer:
            seen = self._look_into(writer, None)
            writer.finish()
        assert seen.ref is not None
        journal.tree(seen.ref.hex())
        return seen.tree

    def read_back(self, bounds: Bounds) -> FileTree:
        """Scan the directory after a program has worked in it; what is beyond the bounds is refused and not read."""
        with self.store.observer() as writer:
            seen = self._look_into(writer, bounds)
            writer.finish()
        return seen.tree

    def keep(self, segments: Segments) -> FileTree:
        """Put what is at a path into the store, and give it as a tree of that entry alone."""
        parent = self.directory.open_directory(segments[:-1])
        try:
            with self.store.observer() as writer:
                known = self._seen and self._seen.entry(segments)
                found = survey_entry(parent, segments[-1], writer, known, directory="/" + "/".join(segments[:-1]))
                writer.finish()
                return found.tree
        finally:
            os.close(parent)

    def _newest(self) -> Survey | None:
        """Give the newest scan that is known: of this process, or the newest snapshot in the store."""
        if self._seen is None:
            newest = self.store.newest()
            if newest is not None:
                self._seen = self.store.survey(newest)
                if newest.kind == "git":
                    self.base = Base(self._seen.tree, newest.extra["git_tree"])
        return self._seen

    def work(self) -> Work:
        """Begin a piece of work."""
        return Work(self)

    def go_to(self, journal: Journal, wanted: FileTree) -> FileTree:
        """Make the directory what a tree says, with every step in the journal; give what it was."""
        now = self.look()
        restore_tree(self.directory, journal, now, wanted)
        return now

    def go_back(self, ref: str) -> tuple[Note, ...]:
        """Make the directory what a manifest says, and return what files lost by it; for a journal that is undone.

        What is there now is not kept, and so needs no room in the store; new files, however large, are not read.
        """
        wanted = self.store.tree(bytes.fromhex(ref))
        try:
            return self._go_back(wanted)
        except PermissionError:
            # A program took permissions away, from itself and us; what is wanted says what they were.
            self.directory.make_readable(wanted)
            return self._go_back(wanted)

    def _go_back(self, wanted: FileTree) -> tuple[Note, ...]:
        sink = HashOnly()
        discarded = Discarded(wanted, sink)
        now = survey(self.directory.descriptor, sink, self._seen, discarded=discarded).tree
        journal = Journal(self.directory, self.journals, self.go_back)
        try:
            restore_tree(self.directory, journal, now, wanted)
        except BaseException:
            journal.undo()
            raise
        journal.close()
        return tuple(journal.notes)

    def recover(self) -> int:
        """Undo what processes that are gone left unfinished; give how many pieces of work that were.

        Raises `OSError` that says so where it cannot be undone: the files are then as they were left.
        """
        with self.lock:
            try:
                undone = self._settle().undone
            except OSError as error:
                raise fault(
                    type(error),
                    error.errno or EIO,
                    f"cannot open {self.path!r}: a process that was killed left work unfinished, and it cannot be "
                    f"undone: {error.strerror or error}; remove the cause and open it again, or open it with "
                    f"read_only=True to look at it",
                ) from error
        if undone:
            logger.warning("undid %d pieces of work in %s that a killed process left unfinished", undone, self.path)
        return undone

    @property
    def is_in_place(self) -> bool:
        """Whether the directory that was opened is still at its path."""
        try:
            there = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(self.directory.descriptor))

    def check_in_place(self) -> None:
        """Raise `FileNotFoundError` if the directory was removed or renamed.

        It is held open, and reading and writing would go on where nobody looks.
        """
        if not self.is_in_place:
            raise fault(
                FileNotFoundError,
                ENOENT,
                f"cannot use {self.path!r}: the directory that was opened is not there any more; put it back, or open "
                f"what is there now",
            )

    def take(self, work: Work, *paths: Segments) -> None:
        """Claim paths for a piece of work, once everything that processes that are gone left is undone.

        `OSError` (EBUSY) if unfinished work of anybody else changed one of them. `lock` is held.
        """
        self.check_in_place()
        self._see_others(*paths)
        self.claims.take(work, *paths)

    def refuse_unfinished(self, work: Work | None) -> None:
        """Refuse to keep as a moment what unfinished work of others has changed: `OSError` (EBUSY). `lock` is held."""
        self._see_others(())
        self.claims.check(work, ())

    def _see_others(self, *paths: Segments) -> None:
        others = self._settle()
        if others.undone:
            logger.warning("undid %d pieces of work in %s of a process that is gone", others.undone, self.path)
        for changed in others.at_work:
            self.claims.check_beside(changed, *paths)

    def _settle(self) -> Others:
        own = {work.journal.path for work in self.works if work.journal.path is not None}
        return settle(self.directory, self.journals, own, self.go_back)

    def tell_of_unfinished(self) -> int:
        """Say in the log that files are as a killed process left them; for those who may not change anything."""
        left = count_left_behind(self.journals)
        if left:
            logger.warning(
                "%s is as a killed process left it: %d pieces of work are unfinished; open it for writing to undo them",
                self.path,
                left,
            )
        return left


class Work:
    """One piece of work on a root: its journal and its claims, ended together."""

    def __init__(self, root: HostRoot) -> None:
        self.root = root
        self.journal = Journal(root.directory, root.journals, root.go_back)
        # What could not be put back as it was when this was undone.
        self.inexact: tuple[Note, ...] = ()
        root.works.add(self)

    def begin(self) -> Part:
        """Begin a part of this work, which may be undone by itself."""
        return Part(self)

    def undo(self) -> None:
        """Put everything back; raises what stops it, and may then be called again."""
        with uninterrupted(), self.root.lock:
            self.inexact = self.journal.undo()
            self.root.claims.release(self)

    def close(self) -> None:
        """Let everything stay."""
        with uninterrupted(), self.root.lock:
            self.root.claims.release(self)
            self.journal.close()


class Part:
    """A part of a piece of work: that of a transaction in a transaction."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.inexact: tuple[Note, ...] = ()
        self._nested = Nested(work.journal)

    def begin(self) -> Part:
        """Begin a part of this part."""
        return Part(self.work)

    def undo(self) -> None:
        """Put back what this part changed."""
        with uninterrupted(), self.work.root.lock:
            self.inexact = self._nested.undo()

    def close(self) -> None:
        """Let what was done stay, as far as the whole work does."""


def default_store(root: str) -> str:
    """Give where a root's snapshots are kept if nobody says: below the user's state directory, or the system's."""
    own = f"{os.path.basename(root) or 'root'}-{_known_by(root)}"
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    for folder in (os.path.join(state, "weakfs"), f"/var/tmp/weakfs-{os.getuid()}"):
        if os.path.isabs(folder) and not is_inside(os.path.realpath(folder), root) and _can_be_made(folder):
            return os.path.join(folder, own)
    raise ValueError(
        f"cannot find a place outside {root!r} for what its snapshots hold; name one: HostFilesystem(..., store=PATH)"
    )


def _can_be_made(folder: str) -> bool:
    """Tell whether a directory is ours to be written, or can be made with those above it."""
    if os.path.lexists(folder) and os.lstat(folder).st_uid != os.getuid():
        # Somebody else made it first, in a directory where everybody may.
        return False
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _known_by(root: str) -> str:
    return sha256(os.fsencode(root)).hexdigest()[:16]


def is_inside(path: str, root: str) -> bool:
    """Tell whether a path is a directory or lies below it; both real."""
    return path == root or path.startswith(root.rstrip("/") + "/")
