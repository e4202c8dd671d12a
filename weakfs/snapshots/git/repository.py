"""The repository that snapshots are commits of: bare, SHA-256 object ids, one ref a snapshot."""

from __future__ import annotations

import errno
import os
import shutil
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from threading import Lock
from urllib.parse import quote

from weakfs.filesystem.errors import fault
from weakfs.session.blobs.blob import Stored
from weakfs.snapshots.git.cat_file import GitReader
from weakfs.snapshots.git.command import initialise, run, writing
from weakfs.snapshots.git.fast_import import FastImport, remove_leftovers
from weakfs.snapshots.store import atomic_files as disk
from weakfs.snapshots.store.errors import StoreDamaged

REFS = "refs/weakfs/"
# Contents of a snapshot that its own commit cannot have, by their ids.
BESIDE_REFS = "refs/weakfs-beside/"
# Contents that somebody else needed when it was collected last.
KEPT_REF = "refs/weakfs-kept/all"

OURS = ("refs/weakfs", "refs/weakfs-beside", "refs/weakfs-kept")

# What would do something by itself, were it not told; also when the user works with the repository.
CONFIGURATION = b"""\
[core]
\trepositoryformatversion = 1
\tfilemode = true
\tbare = true
\thooksPath = /dev/null
\tbigFileThreshold = 4m
\tlogAllRefUpdates = false
\tfsync = objects,derived-metadata,reference
[extensions]
\tobjectFormat = sha256
[gc]
\tauto = 0
\tpruneExpire = never
[maintenance]
\tauto = false
"""

IDX = struct.Struct(">4sI")
# How often taking names away is tried, while others move them.
REF_ATTEMPTS = 10

IDX_HEAD = IDX.pack(b"\xfftOc", 2)
FANOUT = 8 + 255 * 4
FIRST_ID = FANOUT + 4
ID_SIZE = 32


class GitRepository:
    """A repository at `path`, made when something is put in. Safe for threads and processes."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.objects = os.path.join(path, "objects")
        self.imports = os.path.join(os.path.dirname(path), "imports")
        self._lock = Lock()
        self._packs: set[str] = set()
        self._ids: frozenset[bytes] = frozenset()
        self._reader = GitReader(path)

    @property
    def is_there(self) -> bool:
        """Whether anything was ever put in."""
        return os.path.exists(os.path.join(self.path, "HEAD"))

    def make(self) -> None:
        """Make it where it is missing. Of several who do so at once one makes it."""
        with writing(self.path):
            disk.make_folder(self.imports)
            if not self.is_there:
                self._make()

    def _make(self) -> None:
        descriptor, temporary = disk.open_temporary(self.imports)
        made = temporary + ".git"
        try:
            initialise(made)
            disk.write_over(os.path.join(made, "config"), CONFIGURATION)
            disk.sync_folder(made)
            try:
                os.rename(made, self.path)
            except OSError:
                if not self.is_there:
                    raise
            disk.sync_folder(os.path.dirname(self.path))
        finally:
            shutil.rmtree(made, ignore_errors=True)
            disk.remove(temporary)
            os.close(descriptor)

    # Looking.

    def ids(self) -> frozenset[bytes]:
        """Give the ids of all objects. A listing, and the indexes of the packs that are new."""
        with self._lock:
            folder = os.path.join(self.objects, "pack")
            try:
                listed = {name for name in os.listdir(folder) if name.endswith(".idx")}
            except FileNotFoundError:
                listed = set()
            if listed != self._packs:
                kept = self._ids if self._packs <= listed else frozenset[bytes]()
                new = listed - self._packs if self._packs <= listed else listed
                self._ids = kept.union(*(_ids_of(os.path.join(folder, name)) for name in new))
                self._packs = listed
            return self._ids

    def has(self, digest: bytes) -> bool:
        """Tell whether a content is here."""
        return digest in self._ids or digest in self.ids()

    def read(self, digest: bytes) -> bytes:
        """Give a content, unchecked. `MissingBlob` if it is not here."""
        return self._reader.read(digest)

    def read_pieces(self, content: Stored) -> Iterator[bytes]:
        """Give a content piece by piece, unchecked."""
        return self._reader.read_pieces(content)

    def sizes(self, digests: Iterable[bytes]) -> Mapping[bytes, int]:
        """Give how many bytes each of some contents takes here."""
        given = "".join(f"{digest.hex()}\n" for digest in digests).encode()
        said = run(self.path, "cat-file", "--batch-check=%(objectname) %(objectsize:disk)", "--buffer", given=given)
        rows = (line.split() for line in said.decode().splitlines())
        return {bytes.fromhex(row[0]): int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}

    def disk_size(self) -> int:
        """Give how many bytes it has, with what is on its way into it."""
        return disk.size_of_files(self.path) + disk.size_of_files(self.imports)

    def refs(self) -> dict[str, str]:
        """Give our refs and the commits that they name."""
        said = run(self.path, "for-each-ref", "--format=%(refname) %(objectname)", *OURS)
        rows = (line.partition(" ") for line in said.decode().splitlines())
        return {name: commit for name, _, commit in rows}

    # Changing.

    def add_refs(self, refs: Mapping[str, str]) -> None:
        """Name commits, all or none of them; `FileExistsError` if one of the names is taken."""
        given = b"".join(_line("create", *ref) for ref in refs.items())
        try:
            run(self.path, "update-ref", "--stdin", given=given)
        except StoreDamaged as error:
            if "cannot lock ref" not in str(error):
                raise
            raise fault(
                FileExistsError,
                errno.EEXIST,
                f"cannot name a snapshot {' or '.join(refs)} in {self.path!r}: that name is taken; give it another id",
            ) from error

    def remove_refs(self, refs: Collection[str]) -> None:
        """Take names away; those that are not there are passed over."""
        for left in reversed(range(REF_ATTEMPTS)):
            there = self.refs()
            given = b"".join(_line("delete", name, there[name]) for name in refs if name in there)
            try:
                if given:
                    run(self.path, "update-ref", "--stdin", given=given)
                return
            except StoreDamaged as error:
                # Somebody else's collection moved the names into one file while this looked for them.
                if not left or "cannot lock ref" not in str(error):
                    raise

    def drop(self, snapshot_id: str) -> None:
        """Take the names of a snapshot away; what only it needed goes with the next `collect`."""
        if self.is_there:
            self.remove_refs((ref_of(snapshot_id), ref_of(snapshot_id, BESIDE_REFS)))

    def collect(self, snapshot_ids: Iterable[str], keep: Iterable[bytes] = ()) -> None:
        """Throw away all but these snapshots and contents. Nobody may be writing."""
        remove_leftovers(self.imports)
        if not self.is_there:
            return
        needed = {ref_of(one, kind) for one in snapshot_ids for kind in (REFS, BESIDE_REFS)}
        self.remove_refs(self.refs().keys() - needed)
        kept = sorted(set(keep) & self.ids())
        if kept:
            stream = FastImport(self.objects, self.imports)
            try:
                commit, _ = stream.commit(KEPT_REF, "contents that are in use", 0, None, beside(kept))
                stream.finish()
            finally:
                stream.abandon()
            self.add_refs({KEPT_REF: commit})
        run(self.path, "-c", "core.compression=1", "gc", "--quiet", "--prune=now")


def ref_of(snapshot_id: str, kind: str = REFS) -> str:
    """Give the ref of a snapshot: its id, with all that has a meaning for git escaped."""
    return kind + quote(snapshot_id, safe="").replace(".", "%2E").replace("~", "%7E")


def beside(digests: Iterable[bytes]) -> Iterator[bytes]:
    """Give the lines of a commit that has contents by their ids."""
    for digest in digests:
        name = digest.hex()
        yield f"M 100644 {name} {name[:2]}/{name[2:]}\n".encode()


def _line(verb: str, ref: str, commit: str) -> bytes:
    return f"{verb} {ref} {commit}\n".encode()


def _ids_of(path: str) -> list[bytes]:
    """Read the index of a pack (gitformat-pack, version 2 with 32-byte ids); nothing where it went meanwhile."""
    try:
        with open(path, "rb") as stream:
            data = stream.read(FIRST_ID)
            if data[:8] != IDX_HEAD:
                return []
            (count,) = struct.unpack_from(">I", data, FANOUT)
            ids = stream.read(count * ID_SIZE)
    except FileNotFoundError:
        return []
    except struct.error:
        raise StoreDamaged(
            f"cannot read the index {path!r}: it was cut off; put it back from a copy, or have git make it again with "
            f"index-pack"
        ) from None
    return [ids[start : start + ID_SIZE] for start in range(0, len(ids), ID_SIZE)]
