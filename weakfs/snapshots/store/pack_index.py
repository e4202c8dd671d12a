"""The pack index of a store: the places of all contents, kept in memory, and the packs that are open for reading."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from threading import Lock

from weakfs.class_decorators import frozen
from weakfs.platforms import Opened
from weakfs.session import MissingBlob
from weakfs.session.blobs.sparse import read_pieces
from weakfs.snapshots.errors import StoreDamaged
from weakfs.snapshots.scan.manifests import manifest_digest
from weakfs.snapshots.store.atomic_files import names_in
from weakfs.snapshots.store.packs import SUFFIX, Rows, open_pack, read_at, read_index

# At most this many packs are kept open.
MAX_OPEN = 16

# (number of the pack, offset, length)
Place = tuple[int, int, int]


class _OpenPack:
    """A pack open for reading, closed with the last reference to it, so that no reader loses its descriptor."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.descriptor = open_pack(path)
        self.size = os.fstat(self.descriptor).st_size

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)


@frozen
class Pack:
    """One pack: its file and its index."""

    path: str
    rows: Rows


class PackIndex:
    """An index of everything in the packs of a folder. It is thread-safe, even while packs are added and removed."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        # The number of each digest's row, counted through the indexes of all packs. Replaced as a whole when packs are
        # removed. A new process reads all indexes: with a tuple for each row that took three times as long.
        self.places: dict[bytes, int] = {}
        self.damaged: dict[str, StoreDamaged] = {}
        self._lock = Lock()
        # The packs, and the number of the first row of each.
        self._packs: list[Pack] = []
        self._starts: list[int] = []
        self._open: OrderedDict[int, _OpenPack] = OrderedDict()

    def refresh(self) -> None:
        """Look for added and removed packs. Reads one listing, and the indexes of new packs."""
        with self._lock:
            while not self._refreshed():
                pass

    def _refreshed(self) -> bool:
        listed = {name for name in names_in(self.folder) if name.endswith(SUFFIX)}
        known = {os.path.basename(pack.path) for pack in self._packs}
        places, packs, starts = self.places, self._packs, self._starts
        # Checked again each time: a writer of the same contents may replace a damaged pack with an intact one.
        self.damaged = {}
        if not known <= listed:
            places, packs, starts, known = {}, [], [], set()
            self._open.clear()
        for name in sorted(listed - known):
            path = os.path.join(self.folder, name)
            try:
                rows = read_index(path)
            except FileNotFoundError:
                # A compaction removed it after the listing. Another pack has its contents now.
                return False
            except StoreDamaged as error:
                self.damaged[name] = error
                continue
            start = starts[-1] + len(packs[-1].rows) if packs else 0
            packs.append(Pack(path, rows))
            starts.append(start)
            places.update(zip(rows.digests(), count(start), strict=False))
        self.places, self._packs, self._starts = places, packs, starts
        return True

    def find(self, digest: bytes) -> Place | None:
        """Return the place of a blob, looking for new packs if necessary."""
        if digest not in self.places:
            self.refresh()
        with self._lock:
            return self._place(digest)

    def _place(self, digest: bytes) -> Place | None:
        row = self.places.get(digest)
        if row is None:
            return None
        number = bisect_right(self._starts, row) - 1
        _, offset, length = self._packs[number].rows[row - self._starts[number]]
        return number, offset, length

    def sizes(self) -> dict[bytes, int]:
        """Return the length of everything in the packs."""
        with self._lock:
            return {digest: length for pack in self._packs for digest, _, length in pack.rows}

    def read(self, digest: bytes) -> bytes:
        """Return the bytes stored under a digest, unverified. Raises `MissingBlob` or `StoreDamaged`."""
        pack, offset, length = self._opened(digest)
        data = read_at(pack.descriptor, offset, length)
        if len(data) < length:
            raise _truncated(digest, pack)
        return data

    def read_manifest(self, digest: bytes) -> bytes:
        """Return a manifest, from any pack that has an intact copy. Raises `MissingBlob` or `StoreDamaged`."""
        manifest = self.read(digest)
        if manifest_digest(manifest) == digest:
            return manifest
        for pack in tuple(self._packs):
            for found, offset, length in pack.rows:
                if found == digest:
                    with suppress(FileNotFoundError), Opened(open_pack(pack.path)) as descriptor:
                        manifest = read_at(descriptor, offset, length)
                    if manifest_digest(manifest) == digest:
                        return manifest
        raise StoreDamaged(
            f"cannot read the manifest {digest.hex()} from {self.path_of(digest)!r}: the file is damaged; restore it "
            f"from a copy, or remove it and drop the snapshots that need it"
        )

    def read_pieces(self, digest: bytes) -> Iterator[bytes]:
        """Yield the bytes under a digest in pieces."""
        pack, offset, length = self._opened(digest)
        for piece in read_pieces(pack.descriptor, offset, length):
            length -= len(piece)
            yield piece
        if length:
            raise _truncated(digest, pack)

    def open_content(self, digest: bytes) -> tuple[int, int] | None:
        """Open the pack that has a blob; return its descriptor and offset, or `None` if no pack has it."""
        try:
            pack, offset, _ = self._opened(digest)
            return os.dup(pack.descriptor), offset
        except (MissingBlob, StoreDamaged, OSError):
            return None

    def read_range(self, digest: bytes, start: int, size: int) -> bytes:
        """Return part of the bytes under a digest, or fewer at their end."""
        pack, offset, length = self._opened(digest)
        return read_at(pack.descriptor, offset + start, max(0, min(size, length - start)))

    def packs(self) -> list[Pack]:
        """Return all intact packs, reading each index again; for a compaction, which has exclusive access."""
        self.refresh()
        return [Pack(pack.path, read_index(pack.path)) for pack in self._packs]

    def path_of(self, digest: bytes) -> str:
        """Return the file that a blob is read from, for messages."""
        with self._lock:
            place = self._place(digest)
            return self.folder if place is None else self._packs[place[0]].path

    def _opened(self, digest: bytes) -> tuple[_OpenPack, int, int]:
        for _ in range(100):
            if digest not in self.places:
                self.refresh()
            with self._lock:
                place = self._place(digest)
                if place is None:
                    break
                number, offset, length = place
                pack = self._open.get(number)
                if pack is None:
                    try:
                        pack = self._open[number] = _OpenPack(self._packs[number].path)
                    except FileNotFoundError:
                        pack = None
                    if len(self._open) > MAX_OPEN:
                        self._open.popitem(last=False)
                else:
                    self._open.move_to_end(number)
            if pack is not None:
                if offset + length > pack.size:
                    raise _truncated(digest, pack)
                return pack, offset, length
            self.refresh()
        for error in self.damaged.values():
            raise StoreDamaged(f"cannot find {digest.hex()}: {error}")
        raise MissingBlob(
            f"the content {digest.hex()} is not in this store; it was never stored, or the snapshots that need it "
            f"were dropped and the store compacted",
            where=self.folder,
            digest=digest,
        )


def _truncated(digest: bytes, pack: _OpenPack) -> StoreDamaged:
    return StoreDamaged(
        f"cannot read {digest.hex()} from {pack.path!r}: the file is truncated; restore it from a copy, or remove "
        f"it and drop the snapshots that need it"
    )
