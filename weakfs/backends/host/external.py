"""The side of a host filesystem that a session asks: snapshots, restores and journals of its transactions."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

from attrs import field, frozen

from weakfs.backends.host.root import HostRoot, Work
from weakfs.filesystem import FilesystemSnapshot
from weakfs.reducers import ExternalFsSnapshot, FileTree
from weakfs.reducers.events import TreeSeen
from weakfs.reducers.external_trees import ExternalTrees
from weakfs.session import Session, SessionView
from weakfs.snapshots.store.store import Store


@frozen
class Rewind:
    """Two trees of what is known: the files are to become the second where that differs from the first."""

    now: FileTree = field(repr=False)
    wanted: FileTree = field(repr=False)


class HostFiles(Protocol):
    """What `HostExternal` needs of the filesystem that it stands for."""

    @property
    def filesystem_id(self) -> str:
        """The id of the directory in sessions."""
        ...

    @property
    def session(self) -> Session:
        """The session that the filesystem is bound to."""
        ...

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""
        ...

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Keep the files as they are now."""
        ...

    def _go_to(self, target: FilesystemSnapshot | Rewind) -> None:
        """Make the files what a snapshot holds, or undo what is known."""
        ...

    def _exchange(self, target: FilesystemSnapshot | Rewind, on_kept: Callable[[FilesystemSnapshot], object]) -> None:
        """Keep the files as they are now and go to `target`, with a single scan."""
        ...


class HostExternal:
    """A host directory as part of a session."""

    restores_all_or_nothing = True

    def __init__(self, filesystem: HostFiles, root: HostRoot) -> None:
        self._filesystem = filesystem
        self.root = root

    @property
    def filesystem_id(self) -> str:
        """What the directory is known by."""
        return self._filesystem.filesystem_id

    @property
    def contents(self) -> Store:
        """The store of the directory's snapshots."""
        return self.root.store

    def lost_snapshots(self) -> tuple[str, ...]:
        """Return the ids of the session's snapshots that neither the store nor the session's records hold any more.

        O(snapshots), and O(records) if the store lacks one.
        """
        session, own, catalogue = self._filesystem.session, self.filesystem_id, self.root.store.catalogue
        lost = [
            one.snapshot_id
            for one in session[ExternalFsSnapshot].all()
            # An archive that the session holds is one of its contents.
            if one.filesystem_id == own and one.data is None and not os.path.lexists(catalogue.path_of(one.snapshot_id))
        ]
        seen: set[str] = set()
        for record in session.records if lost else ():
            if type(record.event) is TreeSeen and record.event.filesystem == own:
                seen.add(record.event.source)
        return tuple(one for one in lost if one not in seen)

    def stand_for(self, filesystem: HostFiles) -> None:
        """Work through another object over the same directory, if that may change it and this one's may not."""
        if self._filesystem.read_only and not filesystem.read_only:
            self._filesystem = filesystem

    def reopen(self, filesystem: HostFiles, root: HostRoot) -> None:
        """Replace a root that was removed or renamed by the one that was opened in its place; the store stays."""
        root.store = self.root.store
        self._filesystem, self.root = filesystem, root

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Keep the files as they are now."""
        return self._filesystem.snapshot(tag)

    def restore(self, snapshot: FilesystemSnapshot | Rewind) -> None:
        """Go back to a snapshot, or undo what is known; the session's own slices are its affair."""
        self._filesystem._go_to(snapshot)

    def exchange(self, snapshot: FilesystemSnapshot | Rewind, on_kept: Callable[[FilesystemSnapshot], object]) -> None:
        """Keep the files as they are now and go back to `snapshot`, with a single scan."""
        self._filesystem._exchange(snapshot, on_kept)

    def known_at(self, then: SessionView, now: SessionView) -> Rewind:
        """Give the paths that differ between two moments, as far as the session knows them. O(what differs)."""
        name = self.filesystem_id
        before, after = ((view[ExternalTrees].latest() or ExternalTrees()).known(name) for view in (then, now))
        # What one of them never heard of is there all the same.
        return Rewind(after.completed(before), before.completed(after))

    def begin(self) -> Work:
        """Begin the journal of a transaction."""
        return self.root.work()
