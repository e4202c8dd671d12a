"""A sink that writes contents to a repository and directories to the store, and commits scans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256

from weakfs.class_decorators import frozen
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree
from weakfs.session.blobs.blob import Stored, digest_of
from weakfs.snapshots.git.fast_import import FastImport
from weakfs.snapshots.git.fast_import_commands import changes, refused_contents
from weakfs.snapshots.git.repository import SIDECAR_REFS, GitRepository, ref_of, sidecar_entries
from weakfs.snapshots.scan.stat_cache import Scan
from weakfs.snapshots.store.catalogue import StoredSnapshot, root_name
from weakfs.snapshots.store.snapshot_writer import StoreWriter
from weakfs.snapshots.store.store_sink import WriterSink


@frozen(eq=False)
class Base:
    """The base of a commit that is written as a difference: a tree of files, and its tree id in git."""

    tree: FileTree
    git_tree: str


class GitSink(WriterSink):
    """A sink for the scan of a snapshot of kind git. `Store.git_writer` creates it, for one thread."""

    def __init__(self, repository: GitRepository, writer: StoreWriter, check_room: Callable[[], object]) -> None:
        super().__init__(writer)
        self.repository = repository
        self._check_room = check_room
        # Nothing is collected while there is a writer. Contents that others add in the meantime need not be known.
        self._known = repository.ids()
        self._added: set[bytes] = set()
        self._stream: FastImport | None = None

    def keeps(self, digest: bytes) -> bool:
        """Return whether a blob is in the repository or in the current stream."""
        return digest in self._known or digest in self._added

    def add(self, content: bytes) -> Stored:
        """Add a blob unless the repository has it."""
        digest = digest_of(content)
        if not self.keeps(digest):
            self._to_write().blob(content)
            self._added.add(digest)
        return Stored(digest, len(content), self.source)

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored:
        """Add a blob of `size` bytes that comes in pieces."""
        found = sha256(b"blob %d\0" % size)

        def passed() -> Iterator[bytes]:
            for piece in pieces:
                found.update(piece)
                yield piece

        self._to_write().blob_of_pieces(size, passed())
        self._added.add(found.digest())
        return Stored(found.digest(), size, self.source)

    def commit(
        self, scan: Scan, *, snapshot_id: str, created_ns: int, tag: str | None, root_path: str, base: Base | None
    ) -> tuple[StoredSnapshot, Base]:
        """Commit a scan as a snapshot: a commit, a ref to it, and finally the entry in the store's catalogue.

        `base` is the result of an earlier commit. Raises what `StoreWriter.commit` raises; nothing is recorded then.
        """
        tree = scan.tree
        if base is None or bytes.fromhex(base.git_tree) not in self._known:
            base = Base(EMPTY_TREE, "")
        message = f"snapshot {snapshot_id}\n\n"
        message += (f"tag: {tag}\n" if tag is not None else "") + f"root: {root_path}\n"
        stream = self._to_write()
        refs = {}
        ref, sidecar_ref = ref_of(snapshot_id), ref_of(snapshot_id, SIDECAR_REFS)
        refs[ref], git_tree = stream.commit(ref, message, created_ns, base.git_tree or None, changes(base.tree, tree))
        refused = sorted(refused_contents(tree))
        if refused:
            refs[sidecar_ref], _ = stream.commit(sidecar_ref, message, created_ns, None, sidecar_entries(refused))
        self._stream = None
        try:
            stream.finish()
        finally:
            stream.abandon()
        self.repository.add_refs(refs)
        try:
            stored = self._writer.commit(
                scan,
                snapshot_id=snapshot_id,
                created_ns=created_ns,
                tag=tag,
                kind="git",
                extra={"commit": refs[ref], "git_tree": git_tree, "root": root_name(root_path)},
            )
        except BaseException:
            self.repository.drop(snapshot_id)
            raise
        return stored, Base(tree, git_tree)

    def abandon(self) -> None:
        """Discard everything that is not committed."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.abandon()

    def _to_write(self) -> FastImport:
        if self._stream is None:
            self._stream = FastImport(self.repository.objects, self.repository.imports, self._check_room)
        return self._stream
