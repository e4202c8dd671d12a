"""A host filesystem as its session sees it: snapshots, restores, and journals of transactions."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from typing import Protocol

from attrs import field

from weakfs.backends.checkout import changed_paths
from weakfs.backends.host.root import HostRoot, Work
from weakfs.class_decorators import frozen
from weakfs.filesystem import FilesystemSnapshot
from weakfs.processes.background import BackgroundProcesses
from weakfs.reducers import ExternalFsSnapshot, FileTree
from weakfs.reducers.events import EntryFound, TreeSeen
from weakfs.reducers.external_trees import external_trees
from weakfs.reducers.merging.file_merge import merge_known
from weakfs.reducers.partial_trees import with_paths
from weakfs.reducers.tree.node import with_mode
from weakfs.session import Session, SessionView
from weakfs.session.merging.resolver import Resolver
from weakfs.session.slices.tags import tag_of
from weakfs.snapshots.snapshot_store import Store

logger = logging.getLogger("weakfs.backends")


@frozen
class Rewind:
    """Two trees of known entries. Where they differ, the files have to be changed from the first to the second."""

    now: FileTree = field(repr=False)
    wanted: FileTree = field(repr=False)


class HostFiles(Protocol):
    """What `HostExternal` needs from its filesystem."""

    @property
    def filesystem_id(self) -> str:
        """The id of the directory in sessions."""
        ...

    @property
    def trees_recorded_as(self) -> str:
        """The id under which the session records the trees of snapshots."""
        ...

    @property
    def session(self) -> Session:
        """The session that the filesystem is bound to."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""
        ...

    @property
    def background(self) -> BackgroundProcesses:
        """The processes that work in the directory."""
        ...

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Take a snapshot of the current files."""
        ...

    def _restore_to(self, target: FilesystemSnapshot | Rewind) -> None:
        """Restore a snapshot, or undo known changes."""
        ...

    def _exchange(self, target: FilesystemSnapshot | Rewind, on_kept: Callable[[FilesystemSnapshot], object]) -> None:
        """Take a snapshot of the current files and restore `target`, with a single scan."""
        ...

    def tree(self) -> FileTree:
        """Return all files."""
        ...

    def _replace(self, wanted: FileTree, source: str) -> None:
        """Make the files the wanted ones, as events of the session."""
        ...


class HostExternal:
    """A host directory attached to a session."""

    restores_all_or_nothing = True
    sightings = frozenset(map(tag_of, (EntryFound, TreeSeen)))

    def __init__(self, filesystem: HostFiles, root: HostRoot) -> None:
        self._filesystem = filesystem
        self.root = root

    @property
    def filesystem_id(self) -> str:
        """The id of the directory in sessions."""
        return self._filesystem.filesystem_id

    @property
    def contents(self) -> Store:
        """The store of the directory's snapshots."""
        return self.root.store

    def lost_snapshots(self) -> tuple[str, ...]:
        """Return the ids of the session's snapshots that are in neither the store nor the session's records.

        O(snapshots), and O(records) if the store lacks one.
        """
        session, own, catalogue = self._filesystem.session, self.filesystem_id, self.root.store.catalogue
        lost = [
            one.snapshot_id
            for one in session[ExternalFsSnapshot].all()
            # An archive in `data` is part of the session, and an image is in neither place.
            if one.filesystem_id == own
            and one.data is None
            and one.kind != "image"
            and not os.path.lexists(catalogue.path_of(one.snapshot_id))
        ]
        seen: set[str] = set()
        for record in session.records if lost else ():
            if type(record.event) is TreeSeen and record.event.filesystem == self._filesystem.trees_recorded_as:
                seen.add(record.event.source)
        return tuple(one for one in lost if one not in seen)

    def serve(self, filesystem: HostFiles) -> None:
        """Use another object for the same directory if that one is writable and the current one is not."""
        if self._filesystem.read_only and not filesystem.read_only:
            self._filesystem = filesystem

    def reopen(self, filesystem: HostFiles, root: HostRoot) -> None:
        """Replace a root that was removed or renamed with the one now open in its place; the store stays."""
        root.use_store(self.root.store)
        self._filesystem, self.root = filesystem, root

    def quiesce(self) -> None:
        """Stop the processes that work in the directory, and record what they changed."""
        ended = self._filesystem.background.end_all("the session was rolled back")
        if ended:
            logger.warning("stopped processes in %s before a rollback: %s", self.root.path, ", ".join(ended))

    def release(self) -> None:
        """Stop the processes that the session started in the directory, and remove the empty journal."""
        self._filesystem.background.end_own("its session was closed")
        self.root.journals.remove_empty()

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Take a snapshot of the current files."""
        return self._filesystem.snapshot(tag)

    def restore(self, snapshot: FilesystemSnapshot | Rewind) -> None:
        """Go back to a snapshot, or undo known changes; the session restores its own slices itself."""
        self._filesystem._restore_to(snapshot)

    def exchange(self, snapshot: FilesystemSnapshot | Rewind, on_kept: Callable[[FilesystemSnapshot], object]) -> None:
        """Take a snapshot of the current files and go back to `snapshot`, with a single scan."""
        self._filesystem._exchange(snapshot, on_kept)

    def known_at(self, then: SessionView, now: SessionView) -> Rewind:
        """Return what changed between two moments, for the entries that the session knows. O(differences)."""
        name = self.filesystem_id
        before, after = (external_trees(view).known(name) for view in (then, now))
        # An entry that is unknown at one of the two moments existed then as well.
        return Rewind(after.completed(before), before.completed(after))

    def scan_changes(self) -> None:
        """Record what background processes have changed."""
        self._filesystem.background.scan_changes()

    def look(self) -> TreeSeen:
        """Scan the directory. Return the event that describes it to the session."""
        filesystem = self._filesystem
        return TreeSeen(filesystem.tree(), "a scan", filesystem.session.now(), self.filesystem_id)

    def known(self, view: SessionView, now: SessionView) -> FileTree:
        """Return the files that the session knew at a moment, including those found only later. O(differences)."""
        trees = (external_trees(one) for one in (view, now))
        then, later = (one.known(self.filesystem_id) for one in trees)
        tree = then.completed(later)
        # The bits of the root are only known from a scan.
        return tree if then.is_whole else with_mode(tree, later.tree.mode)

    def differing(self, one: FileTree, other: FileTree) -> tuple[str, ...]:
        """Return the paths at which two trees differ, in order. O(differences)."""
        return changed_paths(one, other, "/")

    def merged(
        self,
        base: FileTree,
        ours: FileTree,
        theirs: FileTree,
        *,
        paths: Sequence[str] | None = None,
        resolver: Resolver,
    ) -> FileTree:
        """Return our files with what changed from `base` to `theirs`, at `paths` or everywhere."""
        return merge_known(resolver, base, ours, theirs if paths is None else with_paths(base, theirs, paths))

    def aim(self, there: FileTree, wanted: FileTree) -> Rewind:
        """Return what `restore` needs to turn the current files into the wanted ones."""
        return Rewind(there, wanted)

    def replace(self, wanted: FileTree, source: str) -> None:
        """Make the files the wanted ones, as events of the session."""
        self._filesystem._replace(wanted, source)

    def begin(self) -> Work:
        """Begin the journal of a transaction."""
        return self.root.work()
