"""The snapshot store: a directory separate from the directories whose snapshots it keeps.

packs/       contents and manifests, many per file, found by digest
git/         the repository with the contents of snapshots of kind git
imports/     unfinished imports into that repository
snapshots/   the catalogue: a compaction keeps only the contents that its entries need
store.json   the format, and an id that changes when contents are removed
lock         held shared by writers and exclusively by a compaction
git-lock     held shared by git commands that change refs
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from os import PathLike

import orjson

from weakfs.platforms import Opened, fcntl
from weakfs.reducers.tree.node import FileTree
from weakfs.session import MissingBlob, UnknownSnapshot
from weakfs.session.blobs.blob import Stored, checked, verified_pieces
from weakfs.snapshots.accounts import SnapshotAccount, accounts, freed_in_git
from weakfs.snapshots.archive.archive_snapshot import archive_of
from weakfs.snapshots.errors import StoreDamaged, StoreUnwritable, unwritable
from weakfs.snapshots.git.repository import GitRepository
from weakfs.snapshots.git.sink import GitSink
from weakfs.snapshots.scan.sinks import StatToken
from weakfs.snapshots.scan.stat_cache import Scan
from weakfs.snapshots.store import atomic_files as disk
from weakfs.snapshots.store.catalogue import Catalogue, StoredSnapshot, all_but_last
from weakfs.snapshots.store.compaction import Compaction, CompactReport, Needs, needs_of
from weakfs.snapshots.store.manifest_reader import load
from weakfs.snapshots.store.pack_index import PackIndex
from weakfs.snapshots.store.snapshot_writer import StoreWriter
from weakfs.snapshots.store.store_sink import StoreSink
from weakfs.snapshots.undo_journal.journal_references import trees_needed
from weakfs.snapshots.verification import Verification

FORMAT = "weakfs-store"
VERSION = 1

# How long a compaction waits for writers, and how often it checks.
PATIENCE = 60.0
PAUSE = 0.02


class Store:
    """Snapshots with all their contents, in a directory that is created with mode 0700 on the first write.

    Several threads and processes may use one store at once. `max_bytes` limits the combined size of its packs, its
    repository and its catalogue; a write that would exceed it is refused with `OSError` (EDQUOT).
    """

    def __init__(self, path: str | PathLike[str], *, max_bytes: int | None = None) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.max_bytes = max_bytes
        self.catalogue = Catalogue(os.path.join(self.path, "snapshots"))
        self.git = GitRepository(os.path.join(self.path, "git"))
        self._index = PackIndex(os.path.join(self.path, "packs"))
        self._is_ready = False

    def __repr__(self) -> str:
        return f"<Store {self.path!r}>"

    # Reading.

    def has(self, digest: bytes) -> bool:
        """Return whether the store has a blob."""
        return digest in self._index.places or self.git.has(digest) or self._index.find(digest) is not None

    def read(self, digest: bytes) -> bytes:
        """Return a blob. Raises `MissingBlob`, naming it and the store, if it is missing or damaged."""
        try:
            if digest in self._index.places or not self.git.has(digest):
                return checked(digest, self._index.read(digest), self._index.path_of(digest))
        except MissingBlob:
            # The index of packs may be out of date.
            if not self.git.has(digest):
                raise
        return checked(digest, self.git.read(digest), self.git.path)

    def read_pieces(self, content: Stored) -> Iterator[bytes]:
        """Yield a blob of any size piece by piece; raise `MissingBlob` after the last piece if it was damaged."""
        in_git = self._is_in_git(content.digest)
        pieces = self.git.read_pieces(content) if in_git else self._index.read_pieces(content.digest)

        def damaged() -> MissingBlob:
            return MissingBlob(
                f"the content {content.digest.hex()} was damaged; restore the file from a copy",
                where=self.git.path if in_git else self._index.path_of(content.digest),
                digest=content.digest,
            )

        yield from verified_pieces(content.digest, content.size, pieces, damaged)

    def open_content(self, digest: bytes) -> tuple[int, int] | None:
        """Open the pack that has a blob, for a copy by the system; return its descriptor and offset."""
        return None if self._is_in_git(digest) else self._index.open_content(digest)

    def read_range(self, digest: bytes, offset: int, size: int) -> bytes:
        """Return part of a blob that is in a pack, such as an archive, unverified; less at its end."""
        return self._index.read_range(digest, offset, size)

    def _is_in_git(self, digest: bytes) -> bool:
        """Return whether a blob is read from the repository, because the repository has it and no pack does."""
        if not self.git.has(digest):
            return False
        # The index of packs may be out of date.
        return digest not in self._index.places or not os.path.exists(self._index.path_of(digest))

    def read_manifest(self, digest: bytes) -> bytes:
        """Return a directory's manifest. Raises `MissingBlob` if it is missing, `StoreDamaged` if it is damaged."""
        return self._index.read_manifest(digest)

    def tree(self, snapshot: StoredSnapshot | bytes) -> FileTree:
        """Return the tree of a snapshot or of a manifest; contents are read on demand. O(entries)."""
        if isinstance(snapshot, bytes) or snapshot.kind != "tar":
            return self.as_scan(snapshot).tree
        archived = archive_of(snapshot, self)
        return load(bytes.fromhex(snapshot.ref), self.read_manifest, archived, scanned_at=0, token=None).tree

    def as_scan(self, snapshot: StoredSnapshot | bytes) -> Scan:
        """Return a snapshot as a scan, from which the next scan of the directory can start. O(entries)."""
        # Taken before loading: contents that a compaction removes from here on are not trusted.
        token = StatToken(self._place(), is_finished=True)
        if isinstance(snapshot, bytes):
            return Scan(load(snapshot, self.read_manifest, self, scanned_at=0, token=None), 0)
        if snapshot.kind == "git":
            token.place = _in_git(token.place)
        elif snapshot.kind != "tree":
            token.place = ""
        ref, scanned_at = bytes.fromhex(snapshot.ref), snapshot.scanned_ns
        return Scan(load(ref, self.read_manifest, self, scanned_at=scanned_at, token=token), scanned_at)

    # The catalogue.

    def list(self) -> tuple[StoredSnapshot, ...]:
        """Return all snapshots, oldest first."""
        return self.catalogue.entries()

    def get(self, snapshot_id: str) -> StoredSnapshot:
        """Return the entry of a snapshot."""
        return self.catalogue.get(snapshot_id)

    def newest(self) -> StoredSnapshot | None:
        """Return the snapshot that was recorded last, `None` if there is none."""
        return max(self.list(), key=lambda snapshot: snapshot.recorded_ns, default=None)

    def drop(self, snapshot_id: str) -> None:
        """Drop a snapshot. `compact` then frees the space of contents that only it needed."""
        self.catalogue.drop(snapshot_id)
        self.git.drop(snapshot_id)

    def keep_last(self, number: int, *, drop_tagged: bool = False, dry_run: bool = False) -> tuple[StoredSnapshot, ...]:
        """Drop all but the last `number` snapshots; return the dropped ones, oldest first.

        A tagged snapshot is kept regardless of its age, unless `drop_tagged`. With `dry_run` nothing is dropped.
        """
        dropped = all_but_last(self.list(), number, drop_tagged=drop_tagged)
        if not dry_run:
            self.drop_all(snapshot.snapshot_id for snapshot in dropped)
        return dropped

    def drop_all(self, snapshot_ids: Iterable[str]) -> None:
        """Drop snapshots, except for those that another process has dropped in the meantime."""
        for snapshot_id in snapshot_ids:
            with suppress(UnknownSnapshot):
                self.drop(snapshot_id)

    def account(self, snapshots: Sequence[StoredSnapshot] | None = None) -> tuple[SnapshotAccount, ...]:
        """Return each snapshot's size and the space that dropping it would free. O(distinct manifests).

        With `snapshots`, the result is computed as if there were no others.
        """
        found = accounts(self.list() if snapshots is None else snapshots, self.read_manifest, self._size_of)
        return freed_in_git(found, self.read_manifest, self.git)

    def verify(self, snapshots: Sequence[StoredSnapshot] | None = None) -> dict[str, str]:
        """Read everything that all snapshots, or the given ones, need. Return what is damaged or missing: causes by id.

        Nothing else reads contents that are in use and unchanged: scans trust them, and compactions copy only some.
        """
        verification = Verification(self)
        entries, damaged = self.catalogue.readable()
        chosen = entries if snapshots is None else snapshots
        found = {one.snapshot_id: verification.damage(one) for one in chosen}
        # Others may have been dropped meanwhile.
        left, _ = self.catalogue.readable()
        there = {one.snapshot_id for one in left}
        known = {name: damage for name, damage in found.items() if damage is not None and name in there}
        return {**damaged, **known} if snapshots is None else known

    def disk_size(self) -> int:
        """Return the disk usage of the store in bytes."""
        return disk.size_of_files(self.path)

    # Writing.

    @contextmanager
    def writer(self) -> Generator[StoreWriter]:
        """Yield a sink for `scan`, whose `commit` records the scan as a snapshot.

        Contents that are neither finished nor committed on exit are discarded.
        """
        with self._writer(lambda place: place) as writer:
            yield writer

    @contextmanager
    def git_writer(self) -> Generator[GitSink]:
        """Yield a sink for a snapshot of kind git, with contents in the repository.

        Raises `GitUnavailable` without git.
        """
        with self._writer(_in_git) as writer:
            self.git.make()
            sink = GitSink(self.git, writer, self._check_room)
            try:
                yield sink
            finally:
                sink.abandon()

    @contextmanager
    def sink(self) -> Generator[StoreWriter | StoreSink]:
        """Yield a sink for contents that the store does not have. They do not become part of a snapshot."""
        if not self.git.is_there:
            with self.writer() as writer:
                yield writer
            return
        with self._writer("observed ".__add__) as writer:
            place = self._place()
            yield StoreSink(writer, self.git.ids(), (place, _in_git(place)))

    @contextmanager
    def _writer(self, place: Callable[[str], str]) -> Generator[StoreWriter]:
        with self._locked(fcntl.LOCK_SH):
            self._index.refresh()
            own = place(self._place())
            writer = StoreWriter(self, self._index, self.catalogue, own, self.max_bytes, self.git.disk_size)
            try:
                yield writer
            finally:
                writer.abandon()

    def _check_room(self) -> None:
        """Raise `StoreUnwritable` if the store exceeds its limit; for writes to the repository."""
        if self.max_bytes is None:
            return
        folders = (self._index.folder, self.catalogue.folder)
        size = sum(map(disk.size_of_files, folders)) + self.git.disk_size()
        if size > self.max_bytes:
            raise unwritable(
                errno.EDQUOT,
                f"cannot put more into the store {self.path!r}: it has {size} of at most {self.max_bytes} bytes; drop "
                f"snapshots and compact it, or raise max_bytes",
            )

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Keep compactions waiting, for example while contents are read that no snapshot needs yet."""
        with self._locked(fcntl.LOCK_SH):
            yield

    def compact(self, *, keep: Iterable[bytes] = (), keep_trees: Iterable[bytes] = ()) -> CompactReport:
        """Remove contents that neither a snapshot in the catalogue nor unfinished work needs, and merge small packs.

        `keep` lists further contents to keep, such as those of unsaved sessions in other processes, and `keep_trees`
        manifests to keep with everything below them. Waits until no other process is writing (at most a minute, then
        raises `BlockingIOError`); readers are not affected. A crash loses nothing.
        """
        return self.compact_holding(nullcontext, lambda: keep, keep_trees=keep_trees)

    def compact_holding(
        self,
        holding: Callable[[], AbstractContextManager[object]],
        keep: Callable[[], Iterable[bytes]],
        *,
        keep_trees: Iterable[bytes] = (),
    ) -> CompactReport:
        """Compact the store as `compact` does, holding a lock under which `keep()` returns the contents to keep.

        The lock is not held while other processes write to the store, because they may be waiting for it. Raises what
        `compact` raises.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            with holding(), suppress(BlockingIOError), self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB) as lock:
                return self._compact(self._needs_with(self.list(), keep(), keep_trees), lock)
            if time.monotonic() >= deadline:
                raise BlockingIOError(
                    f"cannot compact the store {self.path!r}: another process has been writing to it for a minute; "
                    f"try again later"
                )
            time.sleep(PAUSE)

    def _compact(self, needs: Needs, lock: int) -> CompactReport:
        report = Compaction(self._index, needs).run(self._renew_id)
        if self.git.is_there:
            self._renew_id()
        kept = [snapshot.snapshot_id for snapshot in self.list() if snapshot.kind == "git"]
        self.git.collect(kept, needs.contents, lock=lock)
        return report

    def _needs_with(
        self, snapshots: Iterable[StoredSnapshot], keep: Iterable[bytes] = (), keep_trees: Iterable[bytes] = ()
    ) -> Needs:
        """Return the needs of some snapshots, of unfinished work, and of further contents and trees to keep."""
        found = needs_of(snapshots, self.read_manifest)
        found.contents.update(keep)
        seen: set[bytes] = set()
        for ref in {*keep_trees, *trees_needed(self.path)}:
            found.add_tree(ref, self.read_manifest, seen, with_contents=True)
        return found

    def _size_of(self, digest: bytes) -> int:
        place = self._index.find(digest)
        return place[2] if place is not None else 0

    @contextmanager
    def _locked(self, how: int) -> Generator[int]:
        """Lock the store, and yield the descriptor that holds the lock."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._make_ready()
            descriptor = os.open(os.path.join(self.path, "lock"), flags, 0o600)
        except OSError as error:
            raise self._unwritable(error) from error
        with Opened(descriptor):
            fcntl.flock(descriptor, how)
            yield descriptor

    def _make_ready(self) -> None:
        """Create the store's directory if it is missing, and remove temporary files of dead processes."""
        if self._is_ready and os.path.exists(self._id_path):
            return
        for folder in (self.path, self._index.folder, self.catalogue.folder):
            disk.make_folder(folder)
            disk.remove_leftovers(folder)
        if not os.path.exists(self._id_path):
            with suppress(FileExistsError):
                disk.write_new(self._id_path, self._new_id())
        self._is_ready = True

    def _unwritable(self, error: OSError) -> StoreUnwritable:
        name = error.filename2 or error.filename
        cause = f"{error.strerror or error}: {name!r}" if name else str(error.strerror or error)
        return unwritable(
            error.errno or errno.EIO,
            f"cannot write to the store {self.path!r}: {cause}; remove the cause, or use another store",
        )

    @property
    def _id_path(self) -> str:
        return os.path.join(self.path, "store.json")

    def _new_id(self) -> bytes:
        return orjson.dumps({"format": FORMAT, "version": VERSION, "id": os.urandom(16).hex()}) + b"\n"

    def _renew_id(self) -> None:
        try:
            disk.write_over(self._id_path, self._new_id())
        except OSError as error:
            raise self._unwritable(error) from error

    def _place(self) -> str:
        """Return an identifier of the contents that are in the store now; a compaction changes it."""
        try:
            document = orjson.loads(disk.read_small(self._id_path))
            found = document["id"]
            if document["format"] != FORMAT or document["version"] != VERSION or type(found) is not str:
                raise ValueError(f"its format is {document['format']!r:.40}, version {document['version']!r:.40}")
        except FileNotFoundError:
            return ""
        except (ValueError, KeyError, TypeError) as error:
            raise StoreDamaged(
                f"cannot use the store {self.path!r}: store.json has an unknown format ({error}); use the release of "
                f"weakfs that wrote it, or remove it to have a new one created"
            ) from None
        return found


def _in_git(place: str) -> str:
    """Return an identifier of the contents that are in the repository now."""
    return f"git {place}"
