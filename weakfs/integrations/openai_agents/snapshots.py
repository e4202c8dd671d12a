"""Snapshots of a sandbox, stored as a session: each snapshot is a record, and equal contents are stored once."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Literal

from agents.sandbox.errors import SnapshotNotRestorableError, SnapshotPersistError, SnapshotRestoreError
from agents.sandbox.session.dependencies import Dependencies
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec

from weakfs import InMemoryFilesystem, Session
from weakfs.errors import WeakfsError
from weakfs.storage import open_event_store

TAG = "sandbox snapshot"


class WeakfsSnapshot(SnapshotBase):
    """The files of a sandbox as they were when it stopped, in the session `id` at `location`.

    Any sandbox client can use it. Each stop is a record of that session with its own snapshot, so that
    `weakfs timeline`, `diff` and `rollback` work with them; the newest state is restored. `location` is a folder or a
    URL. The location is part of a sandbox's saved state, so do not put passwords into it.
    """

    type: Literal["weakfs"] = "weakfs"  # pyright: ignore[reportIncompatibleVariableOverride]  # as the SDK requires
    location: str

    async def persist(self, data: io.IOBase, *, dependencies: Dependencies | None = None) -> None:
        """Store the files of an uncompressed tar archive as the newest state.

        Raises `SnapshotPersistError` if that fails.
        """

        def store() -> None:
            with Session.open(self.location, self.id) as session:
                InMemoryFilesystem(session).import_bytes(data.read())
                session.snapshot(TAG)

        try:
            await asyncio.to_thread(store)
        except (WeakfsError, OSError, ValueError) as error:
            raise SnapshotPersistError(snapshot_id=self.id, path=Path(self.location), cause=error) from error

    async def restore(self, *, dependencies: Dependencies | None = None) -> io.IOBase:
        """Return the newest files as an uncompressed tar archive.

        Raises `SnapshotNotRestorableError` if no files are stored, and `SnapshotRestoreError` if they cannot be read.
        """
        if not await self.restorable():
            raise SnapshotNotRestorableError(snapshot_id=self.id, path=Path(self.location))

        def read() -> bytes:
            with Session.open(self.location, self.id) as session:
                return InMemoryFilesystem(session).export_bytes()

        try:
            return io.BytesIO(await asyncio.to_thread(read))
        except (WeakfsError, OSError, ValueError) as error:
            raise SnapshotRestoreError(snapshot_id=self.id, path=Path(self.location), cause=error) from error

    async def restorable(self, *, dependencies: Dependencies | None = None) -> bool:
        """Return whether there are stored files."""
        return await asyncio.to_thread(is_stored, self.location, self.id)


class WeakfsSnapshotSpec(SnapshotSpec):
    """Snapshots that are stored as sessions at `location`."""

    type: Literal["weakfs"] = "weakfs"  # pyright: ignore[reportIncompatibleVariableOverride]  # as the SDK requires
    location: str

    def build(self, snapshot_id: str) -> SnapshotBase:
        """Return the snapshot of a sandbox."""
        return WeakfsSnapshot(id=snapshot_id, location=self.location)


def is_stored(location: str, session_id: str) -> bool:
    """Return whether a session is stored at a location."""
    store = open_event_store(location)
    try:
        return bool(store.head(session_id))
    finally:
        store.close()
