"""Putting a snapshot into a store: contents and manifests into one pack, then the entry in the catalogue."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from weakfs.session.blobs.blob import ContentSource, Stored, digest_of
from weakfs.snapshots.scan.sinks import StatToken, digest_of_pieces
from weakfs.snapshots.scan.stat_cache import Survey
from weakfs.snapshots.store import atomic_files as disk
from weakfs.snapshots.store.catalogue import Catalogue, SnapshotKind, StoredSnapshot
from weakfs.snapshots.store.errors import StoreUnwritable, unwritable
from weakfs.snapshots.store.manifests import manifest_digest
from weakfs.snapshots.store.pack_index import PackIndex
from weakfs.snapshots.store.packs import PackWriter

# What an entry of the catalogue takes at most, set aside before the pack is finished.
ENTRY_SIZE = 4096

T = TypeVar("T")


class StoreWriter:
    """A sink for surveys whose contents go into one new pack. Made by `Store.writer`; for one thread."""

    def __init__(
        self,
        source: ContentSource,
        index: PackIndex,
        catalogue: Catalogue,
        place: str,
        max_bytes: int | None,
        size_besides: Callable[[], int] = lambda: 0,
    ) -> None:
        self.token = StatToken(place)
        self.source = source
        self._index = index
        # No pack goes while there is a writer, and what comes meanwhile need not be known.
        self._places = index.places
        self._catalogue = catalogue
        self._max_bytes = max_bytes
        # How many bytes the store has elsewhere, which count as well.
        self._size_besides = size_besides
        self._pack: PackWriter | None = None

    def trusts(self, token: StatToken | None) -> bool:
        """Tell whether all below a directory with that token is in the store, or in what we are writing."""
        return token is self.token or (token is not None and token.is_finished and token.place == self.token.place)

    def keeps(self, digest: bytes) -> bool:
        """Tell whether something is in the store, or in what we are writing."""
        return digest in self._places or (self._pack is not None and digest in self._pack.places)

    def add(self, content: bytes) -> Stored:
        """Put a content in, unless it is there."""
        digest = digest_of(content)
        if not self.keeps(digest):
            self._writing(lambda: self._to_write().add(digest, content))
        return Stored(digest, len(content), self.source)

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored:
        """Put in a content of `size` bytes that comes in pieces."""
        digest = self._to_write().add_pieces(
            lambda append: digest_of_pieces(size, pieces, lambda piece: self._writing(lambda: append(piece))),
            self._places.__contains__,
        )
        return Stored(digest, size, self.source)

    def add_manifest(self, manifest: bytes) -> bytes:
        """Put in a directory's manifest, unless it is there."""
        digest = manifest_digest(manifest)
        if not self.keeps(digest):
            self._writing(lambda: self._to_write().add(digest, manifest))
        return digest

    def finish(self) -> None:
        """Make durable what was put in; in no snapshot yet, it stays until the store is compacted."""
        pack, self._pack = self._pack, None
        if pack is not None:
            try:
                self._writing(pack.finish)
            except BaseException:
                pack.abandon()
                raise
            self._index.refresh()
        else:
            # What we go by may have been written by somebody who has not come to this yet.
            self._writing(lambda: disk.sync_folder(self._index.folder))
        self._places = self._index.places
        self.token.is_finished = True

    def commit(
        self,
        survey: Survey,
        *,
        snapshot_id: str,
        created_at: int,
        tag: str | None = None,
        kind: SnapshotKind = "tree",
        contents: Iterable[bytes] = (),
        extra: Mapping[str, str] | None = None,
    ) -> StoredSnapshot:
        """Finish, and record the survey as a snapshot: when this returns it survives a crash.

        `contents` are digests of what else it needs. Raises `FileExistsError` if the id is taken,
        `StoreUnwritable` (EDQUOT, ENOSPC) if it does not fit, and nothing is recorded.
        """
        if survey.ref is None or not self.trusts(survey.root.token):
            raise ValueError("cannot record this survey: it was not made with this store; survey with its writer")
        tree = survey.tree
        snapshot = StoredSnapshot(
            snapshot_id=snapshot_id,
            tag=tag,
            kind=kind,
            created_at=created_at,
            ref=survey.ref.hex(),
            scanned_at=survey.started_at,
            recorded_at=time.time_ns(),
            file_count=tree.file_count,
            directory_count=tree.directory_count,
            total_size=tree.total_size,
            contents=tuple(digest.hex() for digest in contents),
            extra=dict(extra or {}),
        )
        self._check_room(ENTRY_SIZE)
        self._writing(lambda: self._record(snapshot))
        return snapshot

    def _record(self, snapshot: StoredSnapshot) -> None:
        # The entry's own bytes are on the disk before the pack is finished: if it is full, neither is there.
        with self._catalogue.adding(snapshot) as publish:
            self.finish()
            try:
                publish()
            except FileExistsError:
                raise self._catalogue.taken(snapshot.snapshot_id) from None

    def abandon(self) -> None:
        """Throw away what is not finished."""
        pack, self._pack = self._pack, None
        if pack is not None:
            pack.abandon()

    def _to_write(self) -> PackWriter:
        if self._pack is None:
            self._pack = self._writing(lambda: PackWriter(self._index.folder, before_writing=self._check_room))
        return self._pack

    def _check_room(self, more: int = 0) -> None:
        """Refuse what would make the store larger than it may be, its index and the entry included."""
        if self._max_bytes is None:
            return
        if self._pack is not None:
            more += self._pack.outstanding
        size = disk.size_of_files(self._index.folder) + disk.size_of_files(self._catalogue.folder)
        size += self._size_besides()
        if size + more > self._max_bytes:
            raise unwritable(
                errno.EDQUOT,
                f"cannot put {more} more bytes into the store {os.path.dirname(self._index.folder)!r}: it has {size} "
                f"of at most {self._max_bytes}; drop snapshots and compact it, or let it have more",
            )

    def _writing(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (StoreUnwritable, FileExistsError):
            raise
        except OSError as error:
            raise unwritable(
                error.errno or errno.EIO,
                f"cannot write to the store {os.path.dirname(self._index.folder)!r}: {error.strerror}; free some "
                f"space or remove the cause, what was stored before is as it was",
            ) from error
