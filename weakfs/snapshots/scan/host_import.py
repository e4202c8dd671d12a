"""Import of a host directory into memory, for a mount; safe even if entries are replaced in the meantime.

Every name is opened relative to its open parent directory and never through a link; anything other than a regular
file, a directory or a link is not opened at all.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from attrs import field

from weakfs.class_decorators import define, frozen
from weakfs.filesystem import Limits
from weakfs.filesystem.primitives import SymlinkPolicy
from weakfs.platforms import O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_PATH, Opened
from weakfs.reducers.timestamps import clamped
from weakfs.reducers.tree import leaf as leaves
from weakfs.reducers.tree import name_escaping as names
from weakfs.reducers.tree.leaf import Leaf
from weakfs.reducers.tree.node import EMPTY_TREE, FileTree, Node, tree_of
from weakfs.search import GlobPattern
from weakfs.session.blobs.sparse import PIECE
from weakfs.session.interruption import check_interrupted, is_interruption
from weakfs.snapshots.directory.entries import READ

READ_FOLLOWING = os.O_RDONLY | O_NONBLOCK | O_CLOEXEC
# Opens a handle to an entry without opening the entry itself: opening a device or a FIFO may have side effects.
HANDLE = O_PATH | O_CLOEXEC

# The maximum depth: each directory on the path is held open, and takes up some of the interpreter's stack.
MAX_DEPTH = 200

# The maximum number of entries read through links: directories that link to one another could be read forever.
MAX_FOLLOWED = 100_000

SPECIAL = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@frozen
class Selection:
    """The part of a host tree to import, and limits on its size."""

    include: tuple[GlobPattern, ...] = ()
    exclude: tuple[GlobPattern, ...] = ()
    max_bytes: int | None = None
    limits: Limits = field(factory=Limits)
    follow_symlinks: SymlinkPolicy = "deny"

    def wants_file(self, path: str) -> bool:
        """Return whether a file or link is selected."""
        if any(pattern.matches_path(path) for pattern in self.exclude):
            return False
        if not self.include:
            return True
        # A selected directory includes everything in it.
        above = [path[:end] for end, char in enumerate(path) if char == "/" and end]
        return any(
            pattern.matches_path(path) or any(pattern.matches_path(p) or pattern.matches_path(p, True) for p in above)
            for pattern in self.include
        )

    def wants_directory(self, path: str) -> bool:
        """Return whether a directory has to be entered."""
        return not any(pattern.matches_path(path) or pattern.matches_path(path, True) for pattern in self.exclude)


@frozen
class ImportedTree:
    """The result of an import: the tree, and each selected path that was skipped, with the reason."""

    tree: FileTree
    skipped: tuple[tuple[str, str], ...]


def import_tree(
    root: str,
    selection: Selection,
    *,
    prefix_depth: int = 0,
    held: FileTree = EMPTY_TREE,
    on_file: Callable[[str, int], object] | None = None,
) -> ImportedTree:
    """Read the whole directory `root`. `on_file(path, size)` is called for each file that was read.

    For the limits, `prefix_depth` is the depth at which the tree will be placed in its filesystem, and `held` are the
    totals of that filesystem so far. Raises `OSError` if `root` itself cannot be opened; entries below it that cannot
    be read are reported in `skipped`.
    """
    with Opened(os.open(root, READ_FOLLOWING | O_DIRECTORY)) as descriptor:
        work = _Import(root, descriptor, selection, prefix_depth, held, on_file)
        tree = work.directory(descriptor, "", ())
        return ImportedTree(tree, tuple(sorted(work.skipped)))


@define(eq=False)
class _Import:
    root: str
    root_descriptor: int
    selection: Selection
    prefix_depth: int
    held: FileTree
    on_file: Callable[[str, int], object] | None
    skipped: list[tuple[str, str]] = field(factory=list)
    size: int = 0
    # Counted against the quotas, along with the previous totals of the filesystem.
    nodes: int = 0
    # The depth of followed links around the current directory, and the number of entries found through links.
    through_links: int = 0
    followed: int = 0

    def directory(self, descriptor: int, path: str, above: tuple[tuple[int, int], ...]) -> FileTree:
        status = os.fstat(descriptor)
        here = (*above, (status.st_dev, status.st_ino))
        nodes: dict[str, Node] = {}
        with os.scandir(descriptor) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            name = names.from_bytes(os.fsencode(entry.name))
            below = f"{path}/{name}"
            check_interrupted()
            before = self.nodes
            try:
                node = self._entry(descriptor, entry, below, here)
            except OSError as error:
                if is_interruption(error):
                    raise
                self.skipped.append((below, error.strerror or str(error)))
                node = None
            if node is None:
                self.nodes = before
            else:
                nodes[name] = node
        return tree_of(
            nodes,
            mode=stat.S_IMODE(status.st_mode),
            modified_at=clamped(status.st_mtime_ns),
            created_at=clamped(status.st_mtime_ns),
        )

    def _entry(
        self, descriptor: int, entry: os.DirEntry[str], path: str, above: tuple[tuple[int, int], ...]
    ) -> Node | None:
        status = entry.stat(follow_symlinks=False)
        kind = stat.S_IFMT(status.st_mode)
        if kind in SPECIAL:
            return self._skip(path, f"is {SPECIAL[kind]}") if self.selection.wants_file(path) else None
        if kind == stat.S_IFDIR:
            if not self.selection.wants_directory(path) or self._refused(path):
                return None
            if len(above) > MAX_DEPTH:
                return self._skip(path, f"is more than {MAX_DEPTH} directories deep")
            with Opened(os.open(entry.name, READ | O_DIRECTORY, dir_fd=descriptor)) as below:
                return self._wanted_tree(below, path, above)
        if not self.selection.wants_file(path) or self._refused(path):
            return None
        if kind == stat.S_IFLNK:
            return self._link(descriptor, entry.name, path, status, above)
        if not self._fits(path, status.st_size):
            return None
        with Opened(os.open(entry.name, READ, dir_fd=descriptor)) as opened:
            return self._file(opened, path)

    def _wanted_tree(self, descriptor: int, path: str, above: tuple[tuple[int, int], ...]) -> FileTree | None:
        tree = self.directory(descriptor, path, above)
        # Directories without any selected file are left out.
        return None if self.selection.include and not tree.file_count else tree

    def _link(
        self,
        descriptor: int,
        name: str,
        path: str,
        status: os.stat_result,
        above: tuple[tuple[int, int], ...],
    ) -> Node | None:
        if self.selection.follow_symlinks == "deny":
            target = names.from_bytes(os.fsencode(os.readlink(name, dir_fd=descriptor)))
            return leaves.link(target, at=clamped(status.st_mtime_ns))
        with self._followed(name, descriptor) as handle:
            if handle is None:
                return self._skip(path, "is a link to a path outside the directory")
            found = os.fstat(handle)
            if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
                return self._skip(path, f"is a link to {SPECIAL.get(stat.S_IFMT(found.st_mode), 'no file')}")
            if stat.S_ISDIR(found.st_mode) and (found.st_dev, found.st_ino) in above:
                return self._skip(path, "is a link to one of its own parent directories")
            with Opened(os.open(f"/proc/self/fd/{handle}", READ_FOLLOWING, dir_fd=descriptor)) as opened:
                if stat.S_ISREG(found.st_mode):
                    return self._file(opened, path)
                if len(above) > MAX_DEPTH:
                    return self._skip(path, f"is more than {MAX_DEPTH} directories deep")
                self.through_links += 1
                try:
                    return self._wanted_tree(opened, path, above)
                finally:
                    self.through_links -= 1

    @contextmanager
    def _followed(self, name: str, descriptor: int) -> Iterator[int | None]:
        """Yield an O_PATH handle to a link's target; `None` if it is outside and links may not lead there."""
        if self.selection.follow_symlinks == "allow":
            with Opened(os.open(name, HANDLE, dir_fd=descriptor)) as handle:
                yield handle
            return
        root = os.path.realpath(f"/proc/self/fd/{self.root_descriptor}")
        real = os.path.realpath(f"/proc/self/fd/{descriptor}/{name}")
        if real != root and not real.startswith(root.rstrip("/") + "/"):
            yield None
            return
        # The real path contains no link; if one is swapped in now, it is not followed.
        current = os.dup(self.root_descriptor)
        try:
            for part in filter(None, real[len(root) :].split("/")):
                below = os.open(part, HANDLE | O_NOFOLLOW, dir_fd=current)
                os.close(current)
                current = below
            yield current
        finally:
            os.close(current)

    def _file(self, descriptor: int, path: str) -> Leaf | None:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return self._skip(path, "is no longer a regular file")
        # The file may have grown, and the target of a link was not checked before.
        if not self._fits(path, status.st_size):
            return None
        room = self._room()
        try:
            data = _read(descriptor, room)
        except MemoryError:
            return self._skip(path, f"has {status.st_size} bytes, more than fit in memory")
        if not self._fits(path, len(data)):
            return None
        self.size += len(data)
        if self.on_file is not None:
            self.on_file(path, len(data))
        return leaves.file(data, mode=stat.S_IMODE(status.st_mode), at=clamped(status.st_mtime_ns))

    def _fits(self, path: str, size: int) -> bool:
        """Return whether a file of this size may be read; record it as skipped if not."""
        room = self._room()
        if room is None or size <= room:
            return True
        self._skip(path, f"has {size} bytes, more than the limits allow")
        return False

    def _room(self) -> int | None:
        """Return the maximum size of the next file."""
        most = self.selection.limits.max_file_size
        total = self.selection.limits.max_total_size
        quotas = (self.selection.max_bytes, None if total is None else total - self.held.total_size)
        left = (max(quota - self.size, 0) for quota in quotas if quota is not None)
        return min((limit for limit in (most, *left) if limit is not None), default=None)

    def _refused(self, path: str) -> bool:
        """Return whether a path breaks the limits on depth, names or number of entries, and record it as skipped."""
        limits = self.selection.limits
        segments = (*("",) * self.prefix_depth, *path[1:].split("/"))
        try:
            limits.check_path(path, segments)
            limits.check_quota(path, size=0, more_size=0, nodes=self.held.node_count + self.nodes, more_nodes=1)
        except OSError as error:
            self._skip(path, str(error))
            return True
        if self.through_links:
            self.followed += 1
            if self.followed > MAX_FOLLOWED:
                self._skip(path, f"comes after {MAX_FOLLOWED} entries, the most that are read through links")
                return True
        self.nodes += 1
        return False

    def _skip(self, path: str, reason: str) -> Leaf | None:
        self.skipped.append((path, reason))
        return None


def _read(descriptor: int, room: int | None) -> bytes:
    """Read a file to its end, or to one byte over the limit."""
    pieces: list[bytes] = []
    left = None if room is None else room + 1
    while left is None or left > 0:
        check_interrupted()
        piece = os.read(descriptor, PIECE if left is None else min(PIECE, left))
        if not piece:
            break
        pieces.append(piece)
        left = None if left is None else left - len(piece)
    return b"".join(pieces)
