"""A host directory as the workplace of background processes: see `weakfs.processes.background`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress

import attrs

from weakfs.backends.checkout import changed_paths
from weakfs.backends.host.primitives import HostFiles
from weakfs.backends.host.root import HostRoot, Part, Step, Work
from weakfs.class_decorators import frozen
from weakfs.processes import CommandOptions
from weakfs.processes.background import HostLauncher, Launcher
from weakfs.reducers import FileTree, diff
from weakfs.reducers.apply import segments_of
from weakfs.reducers.events import TreeSeen
from weakfs.reducers.external_trees import ExternalTree, external_trees
from weakfs.reducers.tree import children as maps
from weakfs.reducers.tree.diff import differences
from weakfs.reducers.tree.leaf import MODIFIED_AT
from weakfs.reducers.tree.node import Node, Segments, find, put, remove
from weakfs.session import Session
from weakfs.snapshots.directory.hard_links import set_mode_of_all_names
from weakfs.snapshots.scan.read_back import events_between, mode_at, without_set_id

# A program may leave large files. Events hold contents up to this size; larger ones stay in the store.
MOST_IN_EVENTS = 1 << 20


@frozen
class HostWorkplace:
    """Where the processes of a host filesystem work."""

    files: HostFiles
    root: HostRoot

    @property
    def session(self) -> Session:
        """The session that the filesystem is bound to."""
        return self.files._session

    @property
    def filesystem_id(self) -> str:
        """The id of the directory in sessions."""
        return self.files.filesystem_id

    def lock(self) -> AbstractContextManager[None]:
        """Keep others from changing the session and the files."""
        return self.files.lock()

    def launcher(self, options: CommandOptions) -> Launcher:
        """Return the launcher of programs in the directory."""
        return HostLauncher(self.root.path, options)

    def refuse_exclusive(self) -> None:
        """Raise `OSError` (EBUSY) while another call has exclusive use of the whole directory."""
        if () in self.root.unfinished(self.files._running()):
            self.root.refuse_unfinished(self.files._running())

    def scan_changes(self, cause: str | None) -> tuple[str, ...]:
        """Scan the directory, and record the differences from the files that the session knows."""
        running, known = self.files._running(), self._known()
        if not known.is_whole:
            # Paths with unfinished work of others are replaced with their known entries, which requires a known tree.
            self.root.refuse_unfinished(running)
        unfinished = self.root.unfinished(running)
        if () in unfinished:
            return ()
        with self.root.store.in_use():
            found = without_unfinished(unfinished, self.root.scan(), known.tree, self.session.now())
            return self.record(found, cause)

    def record(self, found: FileTree, cause: str | None) -> tuple[str, ...]:
        """Record the files that a scan found; see `Workplace.scan_changes`."""
        known = self._known()
        if cause is None or not known.is_whole:
            if not known.is_whole or diff(known.tree, found):
                self._dispatch(TreeSeen(found, "a scan", self.session.now(), self.filesystem_id), cause)
            return ()
        found, set_id_removed = without_set_id(known.tree, found)
        for path in set_id_removed:
            with suppress(OSError):
                segments = segments_of(path)
                found, _ = set_mode_of_all_names(self.root.directory, found, segments, mode_at(found, segments))
        events = list(events_between(known.tree, found, at=self.session.now(), most=MOST_IN_EVENTS))
        if events:
            with self.session._one_commit():
                for event in events:
                    self._dispatch(attrs.evolve(event, filesystem=self.filesystem_id), cause)
        return changed_paths(known.tree, found, "/")

    def knows(self, before: FileTree, after: FileTree) -> bool:
        """Return whether the session knows the files before a change that a scan found, so that it can be undone.

        Times are compared only for files that changed: nothing restores the times of the others. O(differences).
        """
        known = self._known()
        is_as_known = known.is_whole and known.tree.mode == before.mode and not any(differences(known.tree, before))
        if not is_as_known:
            return False
        return all(
            old is None or _has_same_times(find(known.tree, segments_of(path)), old)
            for path, old, _ in differences(before, after)
        )

    def at_end(self, commit: Step, undo: Step) -> bool:
        """Call one of the two functions when the running code's transaction has ended; return whether it is nested."""
        running = self.session._journal(self.filesystem_id)
        if running is None:
            commit()
            return False
        work = running.work if isinstance(running, Part) else running
        assert isinstance(work, Work)
        work.at_end(commit, undo)
        return isinstance(running, Part)

    def _known(self) -> ExternalTree:
        return external_trees(self.session).known(self.filesystem_id)

    def _dispatch(self, event: object, cause: str | None) -> None:
        self.session.dispatch(event, cause=cause)


def _has_same_times(one: Node | None, other: Node) -> bool:
    """Return whether the files of two equal nodes have the same times of modification."""
    if one is other:
        return True
    if type(one) is FileTree and type(other) is FileTree:
        return all(_has_same_times(one._entry(name), node) for name, node in maps.items(other._children))
    return type(one) is tuple and type(other) is tuple and one[MODIFIED_AT] == other[MODIFIED_AT]


def without_unfinished(paths: Iterable[Segments], found: FileTree, known: FileTree, at: int) -> FileTree:
    """Return the tree that was found, with the known entries at some paths."""
    for segments in sorted(paths):
        node = find(known, segments)
        found = remove(found, segments, at) if node is None else put(found, segments, node, at)
    return found
