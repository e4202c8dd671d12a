"""Limits on a scan: entries that are refused or skipped by their status, before they are read, and interruption."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from errno import EDQUOT

from weakfs.errors import fault
from weakfs.filesystem.checkout import ReadBack
from weakfs.filesystem.limits import Limits
from weakfs.reducers.timestamps import clamped
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Node, find
from weakfs.session.blobs.blob import ContentSource, Stored
from weakfs.snapshots.directory.entries import canonical_name
from weakfs.snapshots.scan.manifests import Status
from weakfs.snapshots.scan.sinks import Sink, StatToken

# A scan checks for interruption once per this many entries.
STRIDE = 256


class ScanLimits:
    """Checks the entries that a program left against the limits, directory by directory, during a scan.

    `before` is the tree that the program started with; its entries are not refused. For the quotas, `whole` is the
    tree of the whole filesystem, in which `before` is the directory `prefix`.
    """

    def __init__(
        self, limits: Limits, read_back: ReadBack, before: FileTree, *, prefix: str = "/", whole: FileTree | None = None
    ) -> None:
        self._limits = limits
        self._read_back = read_back
        self._before = before
        self._prefix = "" if prefix == "/" else prefix
        whole = before if whole is None else whole
        self._size_beside = whole.total_size - before.total_size
        self._nodes_beside = whole.node_count - before.node_count
        self._nodes = self._size = self._added = self._changed = 0
        self.check = read_back.check

    @property
    def room(self) -> int | None:
        """How many entries a directory may have; the rest of a longer listing need not be read."""
        most = [
            self._before.node_count + limit
            for limit in (self._read_back.max_entries, self._limits.max_node_count)
            if limit is not None
        ]
        return max(min(most) - self._nodes, 0) + 1 if most else None

    def judge(self, path: str, fresh: Mapping[str, Status]) -> None:
        """Raise `OSError` naming the limit if a directory's entries exceed it. `path` has no trailing slash."""
        self.check()
        children = _children(self._before, path)
        for number, (host, status) in enumerate(fresh.items(), 1):
            if not number % STRIDE:
                self.check()
                self._judge_sums(path)
            self._judge_entry(path, canonical_name(host), status, children)
        self._judge_sums(path)

    def _judge_entry(self, path: str, name: str, status: Status, children: Callable[[str], Node | None]) -> None:
        self._nodes += 1
        was = children(name)
        if was is None:
            self._added += 1
            below = f"{self._prefix}{path}/{name}"
            self._refuse(lambda: self._limits.check_path(below, tuple(below[1:].split("/"))))
        if not stat.S_ISREG(status[0]):
            return
        size = status[1]
        self._size += size
        if type(was) is tuple and leaves.is_file(was) and leaves.size_of(was) == size:
            if was[leaves.MODIFIED_AT] == clamped(status[2]):
                return
        else:
            self._refuse(lambda: self._limits.check_size(f"{self._prefix}{path}/{name}", size))
        self._changed += size

    def _judge_sums(self, path: str) -> None:
        here = f"{self._prefix}{path}" or "/"
        grown = self._size + self._size_beside if self._size > self._before.total_size else 0
        more = self._nodes + self._nodes_beside if self._nodes > self._before.node_count else 0
        self._refuse(lambda: self._limits.check_quota(here, size=0, more_size=grown, nodes=0, more_nodes=more))
        bounds = self._read_back
        if bounds.max_entries is not None and self._added > bounds.max_entries:
            raise _refusal(
                f"cannot read back {here!r}: the program left more than {bounds.max_entries} new files and "
                f"directories; make it create fewer, or work in a directory for temporary files"
            )
        if bounds.max_bytes is not None and self._changed > bounds.max_bytes:
            raise _refusal(
                f"cannot read back {here!r}: the program wrote at least {self._changed} bytes, but only "
                f"{bounds.max_bytes} are allowed; make it write less, or to a directory for temporary files"
            )

    def _refuse(self, check: Callable[[], None]) -> None:
        try:
            check()
        except OSError as error:
            raise _refusal(str(error), error.errno or EDQUOT) from None


def _refusal(message: str, number: int = EDQUOT) -> OSError:
    return fault(OSError, number, f"{message}. All changes made by the program are undone")


def _children(tree: FileTree, path: str) -> Callable[[str], Node | None]:
    """Return a function that looks up entries of a directory in a tree; it finds none if the directory is missing."""
    here = find(tree, tuple(path.split("/")[1:]))
    return here._entry if type(here) is FileTree else lambda name: None


class UnwantedContents:
    """Skips files that a restore will remove or replace: contents that are not in the wanted tree are not read."""

    def __init__(self, wanted: FileTree, source: ContentSource) -> None:
        self._wanted = wanted
        self._source = source

    def has_directory(self, path: str) -> bool:
        """Return whether a directory should stay a directory, so that a scan must enter it."""
        return type(find(self._wanted, tuple(path.split("/")[1:]))) is FileTree

    def stand_in(self, path: str, status: Status) -> leaves.Leaf | None:
        """Return a leaf with unreadable content for a file whose content is not the wanted one."""
        wanted = find(self._wanted, tuple(path.split("/")[1:]))
        if not stat.S_ISREG(status[0]):
            return None
        if type(wanted) is tuple and leaves.is_file(wanted) and leaves.size_of(wanted) == status[1]:
            return None
        content = Stored(bytes(32), status[1], self._source)
        return leaves.file(content, mode=stat.S_IMODE(status[0]), at=clamped(status[2]))


class NoContents(UnwantedContents):
    """Skips the contents of all files, for a scan that needs only the entries."""

    def __init__(self, source: ContentSource) -> None:
        super().__init__(EMPTY_TREE, source)

    def has_directory(self, path: str) -> bool:
        """Return true: every directory is entered."""
        return True


class Interruptible:
    """A sink that checks for interruption between the pieces of large contents."""

    def __init__(self, sink: Sink, check: Callable[[], object]) -> None:
        self._sink = sink
        self._check = check
        self.trusts = sink.trusts
        self.keeps = sink.keeps
        self.add_manifest = sink.add_manifest

    @property
    def token(self) -> StatToken | None:
        """The token of the underlying sink."""
        return self._sink.token

    @property
    def source(self) -> ContentSource:
        """The source of the underlying sink."""
        return self._sink.source

    def add(self, content: bytes) -> Stored | bytes:
        """Add a small blob."""
        self._check()
        return self._sink.add(content)

    def add_pieces(self, size: int, pieces: Iterable[bytes]) -> Stored | bytes:
        """Add a large blob."""
        return self._sink.add_pieces(size, self._checked(pieces))

    def _checked(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._check()
            yield piece
