"""The repository of snapshots that are commits: bare, with SHA-256 object ids and one ref per snapshot."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from urllib.parse import quote

from weakfs.errors import fault
from weakfs.platforms import NOT_A_REGULAR_FILE, Opened, fcntl, open_regular_file
from weakfs.session.blobs.blob import Stored
from weakfs.session.files.atomic_write import sync_folder
from weakfs.snapshots.errors import StoreDamaged
from weakfs.snapshots.git.cat_file import GitReader
from weakfs.snapshots.git.command import initialize, run, writing
from weakfs.snapshots.git.fast_import import FastImport, remove_leftovers
from weakfs.snapshots.git.lock_files import remove_dead_locks, wait_for_young_locks
from weakfs.snapshots.git.private_git_dir import READER, check_objects, private_git_dir, temporary_git_dir
from weakfs.snapshots.store import atomic_files as disk

REFS = "refs/weakfs/"
# The prefix of refs to contents that a snapshot's own commit cannot hold.
SIDECAR_REFS = "refs/weakfs-beside/"
# The ref to contents that were in use elsewhere at the last collection.
KEPT_REF = "refs/weakfs-kept/all"

OURS = ("refs/weakfs", "refs/weakfs-beside", "refs/weakfs-kept")

# Also used by users who work with the repository: git's automatic maintenance is disabled.
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

# Runs a git command, given its arguments, and returns its output: see `run`.
RunGit = Callable[..., bytes]

IDX = struct.Struct(">4sI")
# How many times to try removing refs while other processes pack them.
REF_ATTEMPTS = 10

IDX_HEAD = IDX.pack(b"\xfftOc", 2)
FANOUT = 8 + 255 * 4
FIRST_ID = FANOUT + 4
ID_SIZE = 32


class GitRepository:
    """A repository at `path`, created on the first write. Safe to use from several threads and processes."""

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
        """Whether the repository exists."""
        return os.path.lexists(os.path.join(self.path, "HEAD"))

    def make(self) -> None:
        """Create the repository if it is missing. If several processes try at once, one of them creates it."""
        with writing(self.path):
            disk.make_folder(self.imports)
            if not self.is_there:
                self._make()

    def _make(self) -> None:
        with temporary_git_dir(self.path, self.imports) as made:
            initialize(made)
            disk.write_over(os.path.join(made, "config"), CONFIGURATION)
            # Git syncs none of this: after a power failure, HEAD could be empty, or the directory for packs missing.
            disk.sync_tree(made)
            try:
                os.rename(made, self.path)
            except OSError:
                if not self.is_there:
                    raise
            sync_folder(os.path.dirname(self.path))

    # Reading.

    def ids(self) -> frozenset[bytes]:
        """Return the ids of all objects. Reads a listing and the indexes of new packs."""
        with self._lock:
            folder = os.path.join(self.objects, "pack")
            listed = {name for name in disk.names_in(folder) if name.endswith(".idx")}
            if listed != self._packs:
                kept = self._ids if self._packs <= listed else frozenset[bytes]()
                new = listed - self._packs if self._packs <= listed else listed
                self._ids = kept.union(*(_ids_of(os.path.join(folder, name)) for name in new))
                self._packs = listed
            return self._ids

    def has(self, digest: bytes) -> bool:
        """Return whether the repository has a blob."""
        return digest in self._ids or digest in self.ids()

    def read(self, digest: bytes) -> bytes:
        """Return a blob, unverified. Raises `MissingBlob` if it is not in the repository."""
        return self._reader.read(digest)

    def read_pieces(self, content: Stored) -> Iterator[bytes]:
        """Yield a blob piece by piece, unverified."""
        return self._reader.read_pieces(content)

    def sizes(self, digests: Iterable[bytes]) -> Mapping[bytes, int]:
        """Return how many bytes each of the given contents takes up on disk."""
        given = "".join(f"{digest.hex()}\n" for digest in digests).encode()
        check_objects(self.path)
        check = "--batch-check=%(objectname) %(objectsize:disk)"
        output = run(READER, "cat-file", check, "--buffer", given=given, objects=self.objects)
        rows = (line.split() for line in output.decode().splitlines())
        return {bytes.fromhex(row[0]): int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}

    def disk_size(self) -> int:
        """Return the size of the repository in bytes, including unfinished imports."""
        return disk.size_of_files(self.path) + disk.size_of_files(self.imports)

    def refs(self) -> dict[str, str]:
        """Return our refs and the commits that they point to."""
        with self._private() as git:
            return _refs(git)

    # Changing.

    def add_refs(self, refs: Mapping[str, str]) -> None:
        """Create refs, all or none of them; raise `FileExistsError` if one already exists."""
        given = b"".join(_line("create", *ref) for ref in refs.items())
        try:
            with self._changing() as git:
                git("update-ref", "--stdin", given=given)
                # Git syncs the contents of refs, but not their names.
                for name in {"refs", *map(os.path.dirname, refs)}:
                    sync_folder(os.path.join(self.path, name))
        except StoreDamaged as error:
            if "cannot lock ref" not in str(error):
                raise
            raise fault(
                FileExistsError,
                errno.EEXIST,
                f"cannot name a snapshot {' or '.join(refs)} in {self.path!r}: that name is taken; choose another id",
            ) from error

    def remove_refs(self, refs: Collection[str]) -> None:
        """Delete refs; those that do not exist are ignored."""
        with self._changing() as git:
            for left in reversed(range(REF_ATTEMPTS)):
                there = _refs(git)
                given = b"".join(_line("delete", name, there[name]) for name in refs if name in there)
                try:
                    if given:
                        git("update-ref", "--stdin", given=given)
                    return
                except StoreDamaged as error:
                    # Another process packed the refs while this one was locking them.
                    if not left or "cannot lock ref" not in str(error):
                        raise

    def drop(self, snapshot_id: str) -> None:
        """Delete the refs of a snapshot. The next `collect` removes the contents that only that snapshot needed."""
        if self.is_there:
            self.remove_refs((ref_of(snapshot_id), ref_of(snapshot_id, SIDECAR_REFS)))

    def collect(self, snapshot_ids: Iterable[str], keep: Iterable[bytes] = (), *, lock: int | None = None) -> None:
        """Remove all but these snapshots and contents. No other process may be writing.

        Git goes on if this process is killed, so it gets the descriptor `lock`, which keeps others from writing.
        """
        remove_leftovers(self.imports)
        if not self.is_there:
            return
        needed = {ref_of(one, kind) for one in snapshot_ids for kind in (REFS, SIDECAR_REFS)}
        self.remove_refs(self.refs().keys() - needed)
        kept = sorted(set(keep) & self.ids())
        if kept:
            stream = FastImport(self.objects, self.imports)
            try:
                commit, _ = stream.commit(KEPT_REF, "contents that are in use", 0, None, sidecar_entries(kept))
                stream.finish()
            finally:
                stream.abandon()
            self.add_refs({KEPT_REF: commit})
        wait_for_young_locks(self.path)
        with self._changing(lock) as git:
            # Packed before the loose ones are removed, so that a power failure loses none.
            git("pack-refs", "--all", "--no-prune")
            sync_folder(self.path)
            git("-c", "core.compression=1", "gc", "--quiet", "--prune=now")
        for folder in (os.path.join(self.objects, "pack"), self.path):
            sync_folder(folder)

    @contextmanager
    def _changing(self, *held: int | None) -> Generator[RunGit]:
        """Yield a function that runs git commands that take git's locks; first remove those that a dead git has left.

        Git goes on if this process is killed, so each command holds a lock of ours as long as it runs. It also inherits
        the descriptors in `held`.
        """
        with self._private() as git, Opened(self._open_lock()) as in_use:
            with suppress(BlockingIOError):
                fcntl.flock(in_use, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_dead_locks(self.path)
            fcntl.flock(in_use, fcntl.LOCK_SH)
            yield partial(git, pass_fds=(in_use, *(one for one in held if one is not None)))

    def _open_lock(self) -> int:
        with writing(self.path):
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(f"{self.path}-lock", flags, 0o600)

    @contextmanager
    def _private(self) -> Generator[RunGit]:
        """Yield a function that runs git commands with our configuration instead of that of the repository."""
        check_objects(self.path)
        with private_git_dir(self.path, self.imports, CONFIGURATION) as git_dir:
            yield partial(run, git_dir, objects=self.objects)


def _refs(git: RunGit) -> dict[str, str]:
    output = git("for-each-ref", "--format=%(refname) %(objectname)", *OURS)
    rows = (line.partition(" ") for line in output.decode().splitlines())
    return {name: commit for name, _, commit in rows}


def ref_of(snapshot_id: str, kind: str = REFS) -> str:
    """Return the ref of a snapshot: its id, with characters that are special to git escaped."""
    return kind + quote(snapshot_id, safe="").replace(".", "%2E").replace("~", "%7E")


def sidecar_entries(digests: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the fast-import lines of a commit that holds contents by object id."""
    for digest in digests:
        name = digest.hex()
        yield f"M 100644 {name} {name[:2]}/{name[2:]}\n".encode()


def _line(verb: str, ref: str, commit: str) -> bytes:
    return f"{verb} {ref} {commit}\n".encode()


def _ids_of(path: str) -> list[bytes]:
    """Return the ids in a pack's index (gitformat-pack, version 2 with 32-byte ids); none if it has been removed."""
    try:
        with os.fdopen(open_regular_file(path), "rb") as stream:
            data = stream.read(FIRST_ID)
            if data[:8] != IDX_HEAD:
                return []
            (count,) = struct.unpack_from(">I", data, FANOUT)
            if FIRST_ID + count * ID_SIZE > os.fstat(stream.fileno()).st_size:
                raise _unreadable(path, "it is truncated")
            ids = stream.read(count * ID_SIZE)
    except FileNotFoundError:
        return []
    except struct.error:
        raise _unreadable(path, "it is truncated") from None
    except OSError as error:
        if error.errno not in NOT_A_REGULAR_FILE:
            raise
        raise _unreadable(path, "it is not a regular file") from None
    return [ids[start : start + ID_SIZE] for start in range(0, len(ids), ID_SIZE)]


def _unreadable(path: str, cause: str) -> StoreDamaged:
    return StoreDamaged(
        f"cannot read the index {path!r}: {cause}; restore it from a copy, or have git recreate it with index-pack"
    )
