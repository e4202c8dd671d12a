"""Writing a snapshot to a store: contents and manifests into one pack, then the catalogue entry."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeVar

from weakfs.session import MissingBlob
from weakfs.session.blobs.blob import ContentSource, Stored, digest_of, digest_of_pieces
from weakfs.session.files.atomic_write import sync_folder
from weakfs.snapshots.errors import StoreDamaged, StoreUnwritable, unwritable
from weakfs.snapshots.scan.manifests import manifest_digest
from weakfs.snapshots.scan.sinks import StatToken
from weakfs.snapshots.scan.stat_cache import Scan
from weakfs.snapshots.store import atomic_files as disk
from weakfs.snapshots.store.catalogue import Catalogue, SnapshotKind, StoredSnapshot
from weakfs.snapshots.store.pack_index import PackIndex
from weakfs.snapshots.store.packs import PackWriter

# The maximum size of a catalogue entry, reserved before the pack is finished.
ENTRY_SIZE = 4096

T = TypeVar("T")


class StoreWriter:
    """A sink for scans whose contents go into one new pack. `Store.writer` creates it, for one thread."""

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
        # No pack is removed while there is a writer. Packs that others add in the meantime need not be known.
        self._places = index.places
        self._catalogue = catalogue
        self._max_bytes = max_bytes
        # The size of the store's other parts, which counts against the limit too.
        self._size_besides = size_besides
        self._pack: PackWriter | None = None

    def trusts(self, token: StatToken | None) -> bool:
        """Return whether everything below a directory with that token is in the store or the current pack."""
        return token is self.token or (token is not None and token.is_finished and token.place == self.token.place)

    def keeps(self, digest: bytes) -> bool:
        """Return whether a blob or manifest is in the store or the current pack."""
        return digest in self._places or (self._pack is not None and digest in self._pack.places)

    def add(self, content: bytes) -> Stored:
        """Add a blob unless the store has it."""
        digest = digest_of(content)
        if not self.keeps(digest):
            self._writing(lambda: self._to_write().add(digest, content))
        return Stored(digest, len(content), self.source)

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored:
        """Add a blob of `size` bytes that comes in pieces."""

        def add(append: Callable[[bytes], None]) -> bytes:
            def appended() -> Iterator[bytes]:
                for piece in pieces:
                    self._writing(partial(append, piece))
                    yield piece

            return digest_of_pieces(size, appended())

        digest = self._to_write().add_pieces(add, self._places.__contains__)
        return Stored(digest, size, self.source)

    def add_manifest(self, manifest: bytes) -> bytes:
        """Add a directory's manifest unless the store has it, undamaged."""
        digest = manifest_digest(manifest)
        if not self.keeps(digest) or not self._is_intact(digest):
            self._writing(lambda: self._to_write().add(digest, manifest))
        return digest

    def _is_intact(self, digest: bytes) -> bool:
        """Return whether a manifest that the store or the current pack has can be read."""
        if self._pack is not None and digest in self._pack.places:
            return True
        try:
            self._index.read_manifest(digest)
        except (MissingBlob, StoreDamaged):
            return False
        return True

    def finish(self) -> None:
        """Sync the added contents. They are not part of a snapshot yet, and stay until the store is compacted."""
        pack, self._pack = self._pack, None
        if pack is not None:
            try:
                self._writing(pack.finish)
            except BaseException:
                pack.abandon()
                raise
            self._index.refresh()
        else:
            # We may rely on contents whose writer has not reached this step yet.
            self._writing(lambda: sync_folder(self._index.folder))
        self._places = self._index.places
        self.token.is_finished = True

    def commit(
        self,
        scan: Scan,
        *,
        snapshot_id: str,
        created_ns: int,
        tag: str | None = None,
        kind: SnapshotKind = "tree",
        contents: Iterable[bytes] = (),
        extra: Mapping[str, str] | None = None,
    ) -> StoredSnapshot:
        """Finish, and record the scan as a snapshot, which survives a crash once this returns.

        `contents` are the digests of other contents that it needs. Raises `FileExistsError` if the id is taken, and
        `StoreUnwritable` (EDQUOT, ENOSPC) if it does not fit; nothing is recorded then.
        """
        if scan.ref is None or not self.trusts(scan.root.token):
            raise ValueError("cannot record this scan: it was not made with this store; scan with its writer")
        tree = scan.tree
        snapshot = StoredSnapshot(
            snapshot_id=snapshot_id,
            tag=tag,
            kind=kind,
            created_ns=created_ns,
            ref=scan.ref.hex(),
            scanned_ns=scan.started_at,
            recorded_ns=time.time_ns(),
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
        # The entry is written to disk before the pack is finished: if the disk is full, neither exists.
        with self._catalogue.adding(snapshot) as publish:
            self.finish()
            try:
                publish()
            except FileExistsError:
                raise self._catalogue.taken(snapshot.snapshot_id) from None

    def abandon(self) -> None:
        """Discard everything that is not finished."""
        pack, self._pack = self._pack, None
        if pack is not None:
            pack.abandon()

    def _to_write(self) -> PackWriter:
        if self._pack is None:
            self._pack = self._writing(lambda: PackWriter(self._index.folder, before_writing=self._check_room))
        return self._pack

    def _check_room(self, more: int = 0) -> None:
        """Raise `StoreUnwritable` if the store would exceed its limit, including the pack index and the entry."""
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
                f"of at most {self._max_bytes}; drop snapshots and compact it, or raise max_bytes",
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
                f"space or remove the cause; data stored earlier is unchanged",
            ) from error
