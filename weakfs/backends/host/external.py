"""The side of a host filesystem that a session asks: snapshots, restores and journals of its transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from weakfs.backends.host.root import HostRoot, Part, Work
from weakfs.filesystem import FilesystemSnapshot

if TYPE_CHECKING:
    from weakfs.backends.host.filesystem import HostFilesystem


class HostExternal:
    """A host directory as part of a session."""

    def __init__(self, filesystem: HostFilesystem, root: HostRoot) -> None:
        self._filesystem = filesystem
        self.root = root

    @property
    def filesystem_id(self) -> str:
        """What the directory is known by."""
        return self._filesystem.filesystem_id

    def snapshot(self, tag: str | None = None) -> FilesystemSnapshot:
        """Keep the files as they are now."""
        return self._filesystem.snapshot(tag)

    def restore(self, snapshot: FilesystemSnapshot) -> None:
        """Go back to a snapshot; the session's own slices are its affair."""
        self._filesystem.go_to(snapshot)

    def begin(self) -> Work | Part:
        """Begin the journal of a transaction; of one inside another, a part of that one's."""
        running = cast("Work | Part | None", self._filesystem.session.journal(self.filesystem_id))
        return self.root.work() if running is None else running.begin()
